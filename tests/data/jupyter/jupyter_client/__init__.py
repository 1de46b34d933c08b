"""What the runner of agentd uses of jupyter_client, with a kernel of its own behind pipes: stands in for it in tests."""
import collections, json, os, subprocess, sys, threading, types

from .kernelspec import NAMES, NoSuchKernel


class Channel:
    def __init__(self):
        self.messages, (out, self.into) = collections.deque(), os.pipe()
        self.socket = open(out, 'rb', buffering=0)

    def put(self, message):
        self.messages.append(message)
        os.write(self.into, b'!')

    def msg_ready(self):
        return bool(self.messages)

    def take(self):
        self.socket.read(1)
        return self.messages.popleft()


class Client:
    def __init__(self, process):
        self.process, self.count = process, 0
        self.iopub_channel, self.shell_channel = Channel(), Channel()

    def start_channels(self):
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        channels = {'iopub': self.iopub_channel, 'shell': self.shell_channel}
        for line in self.process.stdout:
            said = json.loads(line)
            channels[said['channel']].put(said['message'])

    def wait_for_ready(self, timeout):
        pass

    def execute(self, code, allow_stdin, store_history):
        self.count += 1
        self.process.stdin.write(json.dumps({'number': str(self.count), 'code': code}) + '\n')
        self.process.stdin.flush()
        return str(self.count)

    def get_iopub_msg(self, timeout):
        return self.iopub_channel.take()

    def get_shell_msg(self, timeout):
        return self.shell_channel.take()


class KernelManager:
    kernel_spec = types.SimpleNamespace(interrupt_mode='signal')

    def __init__(self, kernel_name, transport):
        self.name = kernel_name

    def start_kernel(self, stdout, stderr):
        if self.name not in NAMES:
            raise NoSuchKernel(self.name)
        program = os.path.join(os.path.dirname(os.path.dirname(__file__)), 'kernel.py')
        process = subprocess.Popen(
            [sys.executable, '-S', program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, text=True,
            start_new_session=True,
        )
        self.provisioner = types.SimpleNamespace(process=process)

    def client(self):
        return Client(self.provisioner.process)
