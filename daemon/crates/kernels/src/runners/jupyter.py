# A kernel of the tool `eval` that is one of Jupyter's: this process starts it by the user's own `jupyter_client`, gives it the cells, and
# turns what it says into records.
#
# Records are JSON lines: requests on descriptor 3, answers on descriptor 4. Text goes to descriptors 1 and 2, as that of the kernel itself.
import collections, os, select, shutil, signal, sys, tempfile, threading

REQUESTS, ANSWERS = 3, 4
# Seconds that a kernel has to be ready: less than the daemon waits for this process.
READY_WAIT = 25


def answer(**record):
    data = json.dumps(record, ensure_ascii=True, separators=(',', ':'), default=str).encode() + b'\n'
    while data:
        data = data[os.write(ANSWERS, data):]


def write(text):
    sys.stdout.write(text)
    sys.stdout.flush()


def say(text):
    write(text if text.endswith('\n') else text + '\n')


def leave(text):
    sys.stderr.write(text + '\n')
    sys.stderr.flush()
    os._exit(1)


class Requests:
    """Lines of descriptor 3."""

    def __init__(self, rest):
        self.buffer = bytearray(rest)

    def read(self):
        """Reads what is there; false at the end."""
        data = os.read(REQUESTS, 1 << 16)
        self.buffer += data
        return bool(data)

    def taken(self):
        """The next whole record; `None` where there is none yet."""
        line, end, rest = self.buffer.partition(b'\n')
        if not end:
            return None
        self.buffer = rest
        return json.loads(line)


FOLDER = 'agentd-jupyter-'


def remove_left_folders():
    """Removes the folders of bridges that were killed: those could not."""
    place = tempfile.gettempdir()
    try:
        names = [name for name in os.listdir(place) if name.startswith(FOLDER)]
    except OSError:
        return
    for name in names:
        pid = name.removeprefix(FOLDER).split('-')[0]
        if pid.isdigit() and not os.path.exists(f'/proc/{pid}'):
            # Those of other users stay, and so does what a link leads to.
            shutil.rmtree(os.path.join(place, name), ignore_errors=True)


class Kernel:
    """A kernel of Jupyter, and the connection to it: sockets of the file system in a folder that only the user can enter."""

    def __init__(self, name):
        from jupyter_client import KernelManager
        from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel

        remove_left_folders()
        self.folder = tempfile.mkdtemp(prefix=f'{FOLDER}{os.getpid()}-')
        # The last pieces of what it says beside its messages.
        self.said = collections.deque(maxlen=8)
        try:
            self.manager = KernelManager(kernel_name=name, transport='ipc')
            self.manager.connection_file = os.path.join(self.folder, 'kernel.json')
            self.manager.ip = os.path.join(self.folder, 'k')
            said, to_say = os.pipe()
            try:
                # What it prints beside its messages is no part of a notebook either; ipykernel says it twice.
                self.manager.start_kernel(stdout=to_say, stderr=to_say)
            except NoSuchKernel:
                names = ', '.join(sorted(KernelSpecManager().find_kernel_specs())) or 'none'
                raise SystemExit(f'Jupyter has no kernel {name!r}; there are: {names}') from None
            finally:
                os.close(to_say)
            threading.Thread(target=self.listen, args=(said,), daemon=True).start()
            self.client = self.manager.client()
            self.client.start_channels()
            self.client.wait_for_ready(timeout=READY_WAIT)
        except Exception as error:
            self.end()
            words = self.last_words()
            raise SystemExit(f'the kernel did not start: {type(error).__name__}: {error}' + (f'\n{words}' if words else '')) from error
        except BaseException:
            self.end()
            raise
        self.process = self.manager.provisioner.process
        self.ended = os.pidfd_open(self.process.pid)
        self.takes_signals = self.manager.kernel_spec.interrupt_mode == 'signal'

    def listen(self, said):
        while data := os.read(said, 1024):
            self.said.append(data)

    def last_words(self):
        return without_colours(b''.join(self.said).decode(errors='replace')).strip()

    def end(self):
        process = getattr(getattr(getattr(self, 'manager', None), 'provisioner', None), 'process', None)
        if process is not None:
            process.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


def without_colours(text):
    return re.sub(r'\x1b\[[0-9;?]*[ -/]*[@-~]', '', text)


def take_output(message, number):
    """What a kernel says while a cell runs; true where it says that it has nothing more to do."""
    kind, content = message['msg_type'], message['content']
    if kind == 'stream':
        write(content['text'])
    elif kind in ('display_data', 'execute_result', 'update_display_data'):
        show_bundle(content['data'], is_bare=True)
    elif kind == 'error':
        told = content.get('traceback') or [f"{content.get('ename')}: {content.get('evalue')}"]
        say(without_colours('\n'.join(told)))
        answer(type='error', id=number, ename=content.get('ename', ''), evalue=str(content.get('evalue', ''))[:2000])
    return kind == 'status' and content['execution_state'] == 'idle'


def run_cell(kernel, requests, request):
    import zmq

    number, client = request['id'], kernel.client
    # From here on the cell has begun: whoever reads this knows that it must not be run a second time.
    answer(type='started', id=number)
    wanted = client.execute(request['code'], allow_stdin=False, store_history=True)
    poller = zmq.Poller()
    for source in (client.iopub_channel.socket, client.shell_channel.socket, REQUESTS, kernel.ended):
        poller.register(source, zmq.POLLIN)
    reply, is_idle, was_interrupted = None, False, False
    while reply is None or not is_idle:
        ready = dict(poller.poll())
        if REQUESTS in ready:
            if not requests.read():
                kernel.end()
                os._exit(0)
            while (other := requests.taken()) is not None:
                if other.get('type') == 'interrupt':
                    was_interrupted = True
                    if not kernel.takes_signals:
                        kernel.manager.interrupt_kernel()
        if client.iopub_channel.socket in ready:
            while client.iopub_channel.msg_ready():
                message = client.get_iopub_msg(timeout=0)
                if message['parent_header'].get('msg_id') == wanted:
                    is_idle = take_output(message, number) or is_idle
        if client.shell_channel.socket in ready:
            while client.shell_channel.msg_ready():
                message = client.get_shell_msg(timeout=0)
                if message['parent_header'].get('msg_id') == wanted and message['msg_type'] == 'execute_reply':
                    reply = message['content']
        if kernel.ended in ready and not (ready.keys() - {kernel.ended}):
            kernel.end()
            leave(f'the kernel ended with code {kernel.process.wait()}')
    has_failed = reply['status'] != 'ok'
    answer(
        type='done', id=number, status='error' if has_failed else 'ok', exitCode=1 if has_failed else None,
        executionCount=reply.get('execution_count'), cancelled=was_interrupted and has_failed,
    )


def begin(options):
    for descriptor in (REQUESTS, ANSWERS):
        os.set_inheritable(descriptor, False)
    # The kernel gets the signal as well. It must not inherit that it is ignored.
    signal.signal(signal.SIGINT, lambda *_: None)
    try:
        return Kernel(options['kernel'])
    except ImportError as error:
        leave(f'jupyter_client cannot be imported ({error}): install it for this Python, or name another one')
    except SystemExit as refused:
        leave(str(refused))


options = json.loads(OPTIONS)
requests = Requests(REST)
kernel = begin(options)
answer(type='ready', version='.'.join(map(str, sys.version_info[:3])))
while True:
    while (request := requests.taken()) is not None:
        if request.get('type') == 'run':
            run_cell(kernel, requests, request)
    ready, _, _ = select.select([REQUESTS, kernel.ended], [], [])
    if kernel.ended in ready:
        kernel.end()
        leave(f'the kernel ended with code {kernel.process.wait()}')
    if not requests.read():
        kernel.end()
        os._exit(0)
