import sys
sys.path[:] = [path for path in sys.path if path]
import json, os
if sys.version_info < (3, 10):
    os.write(4, b'{"type":"unsupported","version":"%d.%d"}\n' % sys.version_info[:2])
    sys.exit(1)
data = b''
while b'\n' not in data:
    piece = os.read(3, 1 << 16)
    if not piece:
        sys.exit(0)
    data += piece
line, _, rest = data.partition(b'\n')
first = json.loads(line)
exec(compile(first['runner'], '<agentd kernel>', 'exec'), {'__name__': 'agentd_kernel', 'OPTIONS': first['options'], 'REST': rest})
