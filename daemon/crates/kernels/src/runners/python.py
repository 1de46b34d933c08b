# A kernel of the tool `eval`: runs the cells of one session in one interpreter, from 3.10 on, with the standard library alone.
#
# Records are JSON lines: requests on descriptor 3, answers on descriptor 4. Text never is a record: whatever cells, libraries and their
# processes print goes to the one pipe behind descriptors 1 and 2, so that its order is that in which it was written.
import _thread, ast, builtins, io, json, linecache, os, re, select, signal, sys, time, types

REQUESTS, ANSWERS = 3, 4
OWN_PID, MAIN_THREAD = os.getpid(), _thread.get_ident()
RUNNER = '<agentd kernel>'
AWAIT = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
IS_COROUTINE = 0x80
# Cells whose source is kept for tracebacks.
KEPT_SOURCES = 200


class Interrupts:
    """Delivers SIGINT to the cell that runs: never between cells, and never in the middle of a record."""

    def __init__(self):
        self.is_running, self.shields, self.is_pending = False, 0, False
        self.wake_out, self.wake_in = os.pipe()
        os.set_blocking(self.wake_in, False)
        os.set_blocking(self.wake_out, False)

    def handle(self, _number, _frame):
        if not self.is_running:
            return
        if self.shields:
            self.is_pending = True
            try:
                os.write(self.wake_in, b'!')
            except BlockingIOError:
                pass
            return
        raise KeyboardInterrupt

    def begin(self):
        signal.signal(signal.SIGINT, self.handle)
        self.is_pending = False
        self.drain()
        self.is_running = True

    def drain(self):
        try:
            while os.read(self.wake_out, 512):
                pass
        except BlockingIOError:
            pass

    def __enter__(self):
        if _thread.get_ident() == MAIN_THREAD:
            self.shields += 1

    def __exit__(self, *_failure):
        if _thread.get_ident() == MAIN_THREAD:
            self.shields -= 1
            if not self.shields and self.is_pending and self.is_running:
                self.is_pending = False
                raise KeyboardInterrupt


interrupts = Interrupts()
answering = _thread.allocate_lock()


def answer(**record):
    if os.getpid() != OWN_PID:
        # A fork of the interpreter has no cell of its own.
        return
    data = json.dumps(record, ensure_ascii=True, separators=(',', ':'), default=str).encode() + b'\n'
    with interrupts, answering:
        while data:
            data = data[os.write(ANSWERS, data):]


class Requests:
    """Lines of descriptor 3. Nothing of a line is lost by an interrupt."""

    def __init__(self, rest):
        self.buffer = bytearray(rest)

    def next(self, is_wanted=lambda: False):
        """The next record; `None` when something else is wanted."""
        searched = 0
        while (end := self.buffer.find(b'\n', searched)) < 0:
            searched = len(self.buffer)
            ready, _, _ = select.select([REQUESTS, interrupts.wake_out], [], [])
            if interrupts.wake_out in ready:
                interrupts.drain()
                if is_wanted():
                    return None
            if REQUESTS in ready:
                data = os.read(REQUESTS, 1 << 16)
                if not data:
                    # The daemon has closed the kernel.
                    os._exit(0)
                self.buffer += data
        line = bytes(self.buffer[:end])
        del self.buffer[: end + 1]
        return json.loads(line)


def flush():
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass


def say(text):
    """Writes text of a display on a line of its own."""
    flush()
    if not text.endswith('\n'):
        text += '\n'
    sys.stdout.write(text)
    flush()


# ---- Tools of the session -------------------------------------------------------------------------------------------------------------


class ToolError(Exception):
    """A call of a tool failed, or was refused."""


class ToolResult(str):
    """The text of a tool's result, with all of it in `content` and `details`."""

    content, details = (), None


ToolError.__module__ = ToolResult.__module__ = '__main__'

numbers = iter(range(1, sys.maxsize))
calling = _thread.allocate_lock()


def call(name, arguments=None, /, **named):
    """Calls a tool of the session as the model calls it, and waits for its result."""
    arguments = {**(arguments or {}), **named}
    if not interrupts.is_running:
        raise ToolError('Tools can be called only while a cell runs.')
    with calling, interrupts:
        number = next(numbers)
        flush()
        answer(type='call', call=number, name=name, arguments=arguments)
        while True:
            reply = requests.next(lambda: interrupts.is_pending and _thread.get_ident() == MAIN_THREAD)
            if reply is None:
                break
            # The answer to a call that was given up is nobody's.
            if reply.get('type') == 'result' and reply.get('call') == number:
                break
    texts = [block.get('text', '') for block in reply['content'] if block.get('type') == 'text']
    if reply['isError']:
        raise ToolError('\n'.join(texts))
    result = ToolResult('\n'.join(texts))
    result.content, result.details = reply['content'], reply.get('details')
    return result


class Tools:
    """`tool.NAME(argument=value)` calls the tool of that name."""

    def __getattr__(self, name):
        if name.startswith('__'):
            raise AttributeError(name)
        return lambda arguments=None, /, **named: call(name, arguments, **named)

    def __getitem__(self, name):
        return getattr(self, name)

    def __repr__(self):
        return 'tool.NAME(argument=value, …) calls a tool of the session'


def read(path, **named):
    """Reads a file by the session's tool `read`."""
    return call('read', path=os.fspath(path), **named)


def write(path, content):
    """Writes a file by the session's tool `write`."""
    return call('write', path=os.fspath(path), content=content)


def env(name=None, value=None):
    """All environment variables, one, or sets one."""
    if name is None:
        return dict(os.environ)
    if value is not None:
        os.environ[name] = str(value)
    return os.environ.get(name)


# ---- Displays -------------------------------------------------------------------------------------------------------------------------

def method_value(value, name):
    """What a method of rich displays returns; `None` without one, or where it fails."""
    if isinstance(value, type):
        return None
    method = getattr(value, name, None)
    if not callable(method):
        return None
    try:
        result = method()
    except KeyboardInterrupt:
        raise
    except Exception:
        return None
    # Some return a pair with metadata.
    return result[0] if isinstance(result, tuple) and len(result) == 2 else result


def bundle_of(value):
    bundle = method_value(value, '_repr_mimebundle_')
    bundle = dict(bundle) if isinstance(bundle, dict) else {}
    named = (
        ('text/markdown', '_repr_markdown_'), ('image/png', '_repr_png_'), ('image/jpeg', '_repr_jpeg_'),
        ('application/json', '_repr_json_'), ('text/html', '_repr_html_'),
    )
    for kind, name in named:
        if kind not in bundle:
            found = method_value(value, name)
            if found is not None:
                bundle[kind] = found
    return bundle


def show(value):
    """Shows a value: of what it offers an image, JSON, Markdown, a table of HTML, its text, other HTML."""
    if isinstance(value, ToolResult):
        return say(value)
    if hasattr(value, 'savefig') and hasattr(value, 'get_axes') and not method_value(value, '_repr_png_'):
        if show_figure(value):
            return
    show_bundle(bundle_of(value), value)


def display(*values, raw=False):
    """Shows values in the result. Bytes of an image are shown as one; a bundle `{mime: data}` is taken with `raw=True`."""
    for value in values:
        if isinstance(value, (bytes, bytearray, memoryview)):
            kind = image_kind(bytes(value[:16]))
            if kind:
                show_image(kind, bytes(value))
                continue
        if raw and isinstance(value, dict):
            show_bundle(value, is_bare=True)
        elif isinstance(value, str):
            say(value)
        else:
            show(value)


def show_figure(figure):
    out = io.BytesIO()
    try:
        figure.savefig(out, format='png', bbox_inches='tight')
    except KeyboardInterrupt:
        raise
    except Exception as error:
        say(f'[A figure could not be drawn: {type(error).__name__}: {error}]')
        return True
    return show_image('image/png', out.getvalue())


def show_figures():
    """Shows the figures of matplotlib that a cell has left open, and closes them."""
    plots = sys.modules.get('matplotlib.pyplot')
    if plots is None or not hasattr(plots, 'get_fignums'):
        return
    for number in list(plots.get_fignums()):
        show_figure(plots.figure(number))
    plots.close('all')


# ---- Magics ---------------------------------------------------------------------------------------------------------------------------


class CommandFailed(Exception):
    """A command of a cell ended with a code that is not 0."""

    def __init__(self, code):
        super().__init__(f'The command exited with code {code}.')
        self.code = code


CommandFailed.__module__ = '__main__'


def run_command(words, is_captured=False):
    import subprocess
    flush()
    out = subprocess.PIPE if is_captured else None
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out)
    try:
        printed, _ = process.communicate()
    except BaseException:
        process.kill()
        process.wait()
        raise
    return process.returncode, (printed or b'').decode(errors='replace')


def shell(command, is_captured=False):
    """Runs a line after `!`."""
    code, printed = run_command(['bash', '-c', command], is_captured)
    space['_exit_code'] = code
    return printed.splitlines() if is_captured else None


def magic(name, rest):
    """Runs a line after `%`."""
    import shlex
    rest = rest.strip()
    if name == 'cd':
        os.chdir(os.path.expanduser(rest or '~'))
        say(os.getcwd())
    elif name == 'env':
        variable, separator, value = rest.partition('=') if '=' in rest else rest.partition(' ')
        if separator:
            os.environ[variable.strip()] = value.strip()
        elif rest:
            say(os.environ.get(rest, f'{rest} is not set'))
        else:
            say('\n'.join(f'{key}={value}' for key, value in sorted(os.environ.items())))
    elif name == 'pip':
        code, _ = run_command([sys.executable, '-m', 'pip', *shlex.split(rest)])
        import importlib
        importlib.invalidate_caches()
        if code:
            raise CommandFailed(code)
    elif name == 'load':
        with open(os.path.expanduser(rest), encoding='utf-8') as file:
            say(file.read())
    elif name == 'run':
        words = shlex.split(rest)
        path = os.path.expanduser(words[0])
        with open(path, encoding='utf-8') as file:
            code = compile(file.read(), path, 'exec')
        before = sys.argv
        sys.argv = [path, *words[1:]]
        space['__file__'] = path
        try:
            exec(code, space)
        finally:
            sys.argv = before
            space.pop('__file__', None)
    elif name == 'time':
        begun, begun_cpu = time.perf_counter(), time.process_time()
        execute(rest, '<%time>')
        wall, cpu = time.perf_counter() - begun, time.process_time() - begun_cpu
        say(f'CPU time: {cpu * 1000:.1f} ms, wall time: {wall * 1000:.1f} ms')


MAGICS = ('cd', 'env', 'load', 'pip', 'run', 'time')
MAGIC_LINE = re.compile(r'^(\s*)%(' + '|'.join(MAGICS) + r')(?:\s+(.*))?$')
SHELL_LINE = re.compile(r'^(\s*)(?:([A-Za-z_]\w*)\s*=\s*)?!(.+)$')


def without_magics(source):
    """The source with its magics as calls. Only where it is no Python as it stands: a line of a string may begin like a magic."""
    lines = []
    for line in source.split('\n'):
        found = MAGIC_LINE.match(line)
        if found:
            line = f'{found[1]}__agentd_magic__({found[2]!r}, {found[3] or ""!r})'
        else:
            found = SHELL_LINE.match(line)
            if found and found[2]:
                line = f'{found[1]}{found[2]} = __agentd_shell__({found[3]!r}, True)'
            elif found:
                line = f'{found[1]}__agentd_shell__({found[3]!r})'
        lines.append(line)
    return '\n'.join(lines)


# ---- Cells ----------------------------------------------------------------------------------------------------------------------------

main = types.ModuleType('__main__')
space = main.__dict__
loop = None


def refuse_input(*_arguments):
    raise RuntimeError('Cells have no input: nobody can type an answer. Put the value into the code.')


def finish(code):
    """Runs compiled code; what it awaits, too."""
    global loop
    result = eval(code, space)
    if not code.co_flags & IS_COROUTINE:
        return result
    import asyncio
    if loop is None:
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
    task = loop.create_task(result)
    try:
        return loop.run_until_complete(task)
    except BaseException:
        if not task.done():
            task.cancel()
            loop.run_until_complete(asyncio.wait([task]))
        raise


def parsed(source, name):
    try:
        return ast.parse(source, name)
    except SyntaxError as error:
        replaced = without_magics(source)
        if replaced == source:
            raise error from None
    linecache.cache[name] = (len(source), None, replaced.splitlines(True), name)
    return ast.parse(replaced, name)


def execute(source, name):
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    tree = parsed(source, name)
    last = None
    if tree.body and isinstance(tree.body[-1], ast.Expr) and not source.rstrip().endswith(';'):
        last = ast.Expression(tree.body.pop().value)
    if tree.body:
        finish(compile(tree, name, 'exec', AWAIT, True))
    if last is not None:
        value = finish(compile(last, name, 'eval', AWAIT, True))
        if value is not None:
            space['_'] = value
            show(value)


def short_traceback(error):
    """The lines of a failure that help: where in the cells it happened, the last lines of libraries, and what it says."""
    import traceback
    lines, seen = [], set()

    def tell(error):
        seen.add(id(error))
        before = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        if before is not None and id(before) not in seen and len(seen) < 4:
            tell(before)
            lines.append('\nThe exception above led to this one:\n\n')
        frames = traceback.extract_tb(error.__traceback__)
        frames = [frame for frame in frames if frame.filename != RUNNER]
        of_cells = [frame for frame in frames if frame.filename.startswith('<')]
        shown = set(map(id, of_cells[:3] + of_cells[-7:] + frames[-2:]))
        is_gap = False
        if isinstance(error, SyntaxError) and error.filename and error.filename.startswith('<cell'):
            frames = []
        if frames:
            lines.append('Traceback (most recent call last):\n')
        for frame in frames:
            if id(frame) in shown:
                lines.extend(traceback.StackSummary.from_list([frame]).format())
                is_gap = False
            elif not is_gap:
                lines.append('  …\n')
                is_gap = True
        told = traceback.TracebackException(type(error), error, None)
        lines.extend(told.format_exception_only())

    tell(error)
    return ''.join(lines)


count = 0


def run_cell(request):
    global count
    count += 1
    number, source, name = request['id'], request['code'], f'<cell {count}>'
    linecache.cache.pop(f'<cell {count - KEPT_SOURCES}>', None)
    status, code, was_cancelled = 'ok', None, False
    # From here on the cell has begun: whoever reads this knows that it must not be run a second time.
    answer(type='started', id=number)
    try:
        interrupts.begin()
        if request.get('env'):
            os.environ.update(request['env'])
        found = re.match(r'%%(bash|sh)[^\n]*\n', source)
        if found:
            code, _ = run_command(['bash', '-c', source[found.end():]])
            if code:
                raise CommandFailed(code)
        else:
            execute(source, name)
        show_figures()
        interrupts.is_running = False
    except BaseException as error:
        interrupts.is_running = False
        status, code, was_cancelled = failed(number, error)
    try:
        flush()
    except BaseException:
        pass
    answer(type='done', id=number, status=status, exitCode=code, executionCount=count, cancelled=was_cancelled)


def failed(number, error):
    if isinstance(error, SystemExit):
        if error.code is None or error.code == 0:
            return 'ok', None, False
        code = error.code if isinstance(error.code, int) else 1
        if not isinstance(error.code, int):
            say(str(error.code))
        return 'error', code & 255, False
    try:
        told = short_traceback(error)
    except Exception as odd:
        told = f'{type(error).__name__}: {error} [its traceback could not be made: {odd}]'
    flush()
    try:
        sys.stderr.write(told if told.endswith('\n') else told + '\n')
        flush()
    except Exception:
        pass
    answer(type='error', id=number, ename=type(error).__name__, evalue=str(error)[:2000])
    if isinstance(error, MemoryError):
        space.pop('_', None)
    code = error.code if isinstance(error, CommandFailed) else 1
    return 'error', code, isinstance(error, KeyboardInterrupt)


def begin(options):
    for descriptor in (REQUESTS, ANSWERS):
        os.set_inheritable(descriptor, False)
    signal.signal(signal.SIGINT, interrupts.handle)
    if options.get('memoryBytes'):
        import resource
        try:
            resource.setrlimit(resource.RLIMIT_DATA, (options['memoryBytes'], options['memoryBytes']))
        except (ValueError, OSError):
            # A lower limit is there already.
            pass
    os.environ.setdefault('MPLBACKEND', 'Agg')
    builtins.input = refuse_input
    sys.argv = ['']
    sys.path.insert(0, '')
    sys.modules['__main__'] = main
    main.__builtins__ = builtins
    space.update(
        tool=Tools(), call=call, read=read, write=write, env=env, display=display, ToolError=ToolError,
        __agentd_magic__=magic, __agentd_shell__=shell,
    )


options = json.loads(OPTIONS)
requests = Requests(REST)
begin(options)
answer(type='ready', version='.'.join(map(str, sys.version_info[:3])))
while True:
    # A thread that a cell has left may wait for the end of its call.
    with calling:
        request = requests.next()
    # The answer to a call of an earlier cell is nobody's.
    if request is not None and request.get('type') == 'run':
        run_cell(request)
