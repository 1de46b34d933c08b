"""A kernel that takes code as lines of JSON, and says what a kernel of Jupyter says: stands in for one in tests."""
import contextlib, io, json, sys

space = {}


def send(channel, number, kind, **content):
    message = {'msg_type': kind, 'parent_header': {'msg_id': number}, 'content': content}
    sys.__stdout__.write(json.dumps({'channel': channel, 'message': message}) + '\n')
    sys.__stdout__.flush()


def run(number, code):
    printed = io.StringIO()
    status = 'ok'
    try:
        with contextlib.redirect_stdout(printed):
            try:
                value = eval(compile(code, 'cell', 'eval'), space)
            except SyntaxError:
                value = exec(compile(code, 'cell', 'exec'), space)
        if isinstance(value, dict):
            send('iopub', number, 'display_data', data=value)
        elif value is not None:
            send('iopub', number, 'execute_result', data={'text/plain': repr(value)})
    except BaseException as error:
        status = 'error'
        name = type(error).__name__
        send('iopub', number, 'error', ename=name, evalue=str(error), traceback=[f'\x1b[31m{name}\x1b[0m: {error}'])
    if printed.getvalue():
        send('iopub', number, 'stream', name='stdout', text=printed.getvalue())
    send('shell', number, 'execute_reply', status=status, execution_count=int(number))
    send('iopub', number, 'status', execution_state='idle')


while True:
    try:
        line = sys.stdin.readline()
        if not line:
            break
        request = json.loads(line)
        send('iopub', request['number'], 'status', execution_state='busy')
        run(request['number'], request['code'])
    except KeyboardInterrupt:
        # Between two cells.
        pass
