# How the runners in Python show rich values: the first part of each. They bring `answer`, which sends a record, and `say`, which prints text
# on a line of its own.
import binascii, html.parser, json, re

# Characters of the JSON of one display that its text shows, and bytes of one image.
MAX_JSON, MAX_IMAGE = 8000, 12 << 20

SIGNATURES = ((b'\x89PNG\r\n\x1a\n', 'image/png'), (b'\xff\xd8\xff', 'image/jpeg'), (b'GIF8', 'image/gif'))


def image_kind(data):
    for signature, kind in SIGNATURES:
        if data.startswith(signature):
            return kind
    if data[:4] == b'RIFF' and data[8:12] == b'WEBP':
        return 'image/webp'
    return None


class HtmlText(html.parser.HTMLParser):
    """HTML as Markdown: tables, links, lists and headings; the rest as text."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.out, self.rows, self.row, self.cell, self.hidden, self.links = [], None, None, None, 0, []

    def put(self, text):
        (self.out if self.cell is None else self.cell).append(text)

    def handle_starttag(self, tag, attributes):
        if tag in ('script', 'style', 'head'):
            self.hidden += 1
        elif tag == 'table' and self.rows is None:
            self.rows = []
        elif self.rows is not None and tag == 'tr':
            self.row = []
        elif self.row is not None and tag in ('td', 'th'):
            span = dict(attributes).get('colspan', '1')
            self.cell = []
            self.span = min(int(span), 50) if span.isdigit() else 1
        elif tag == 'br':
            self.put(' ' if self.cell is not None else '\n')
        elif tag == 'li':
            self.put('\n- ')
        elif tag == 'a':
            self.links.append(dict(attributes).get('href'))
            self.put('[')
        elif tag in ('h1', 'h2', 'h3', 'h4', 'h5', 'h6'):
            self.put('\n\n' + '#' * int(tag[1]) + ' ')
        elif tag in ('b', 'strong'):
            self.put('**')
        elif tag in ('code', 'tt'):
            self.put('`')
        elif tag in ('p', 'div', 'ul', 'ol', 'pre') and self.cell is None:
            self.put('\n')

    def handle_endtag(self, tag):
        if tag in ('script', 'style', 'head'):
            self.hidden = max(0, self.hidden - 1)
        elif tag in ('td', 'th') and self.cell is not None:
            text = ' '.join(''.join(self.cell).split()).replace('|', '\\|')
            self.row.extend([text] + [''] * (self.span - 1))
            self.cell = None
        elif tag == 'tr' and self.row is not None:
            self.rows.append(self.row)
            self.row = None
        elif tag == 'table' and self.rows is not None:
            rows, self.rows = [row for row in self.rows if row], None
            if rows:
                width = max(map(len, rows))
                lines = ['| ' + ' | '.join(row + [''] * (width - len(row))) + ' |' for row in rows]
                lines.insert(1, '|' + ' --- |' * width)
                self.out.append('\n' + '\n'.join(lines) + '\n')
        elif tag == 'a' and self.links:
            link = self.links.pop()
            self.put(f']({link})' if link else ']')
        elif tag in ('b', 'strong'):
            self.put('**')
        elif tag in ('code', 'tt'):
            self.put('`')
        elif tag in ('p', 'div', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6') and self.cell is None:
            self.put('\n')

    def handle_data(self, data):
        if self.hidden or (self.rows is not None and self.cell is None):
            return
        self.put(data)


def html_to_markdown(text):
    parser = HtmlText()
    parser.feed(text)
    parser.close()
    lines = [line.rstrip() for line in ''.join(parser.out).split('\n')]
    return re.sub(r'\n{3,}', '\n\n', '\n'.join(lines)).strip()


def show_image(kind, data):
    if isinstance(data, str):
        try:
            data = binascii.a2b_base64(data)
        except binascii.Error:
            return False
    if len(data) > MAX_IMAGE:
        say(f'[An image of {len(data)} bytes is left out: {MAX_IMAGE} are the most.]')
        return True
    encoded = binascii.b2a_base64(data, newline=False).decode()
    answer(type='display', bundle={kind: encoded})
    return True


def show_json(value):
    text = json.dumps(value, ensure_ascii=False, default=str)
    if len(text) > MAX_JSON:
        text = text[:MAX_JSON] + f'… [{len(text)} characters of JSON]'
    say(text)
    answer(type='display', bundle={'application/json': value})


def plain(value):
    try:
        if isinstance(value, (dict, list, tuple, set)) and len(value) > 4:
            import pprint
            return pprint.pformat(value, width=120, compact=True, sort_dicts=False)
        return repr(value)
    except KeyboardInterrupt:
        raise
    except Exception as error:
        return f'<{type(value).__name__}, whose repr failed: {type(error).__name__}: {error}>'


def show_bundle(bundle, value=None, is_bare=False):
    images = [kind for kind in bundle if kind in ('image/png', 'image/jpeg', 'image/gif', 'image/webp')]
    if images and show_image(images[0], bundle[images[0]]):
        return
    if 'application/json' in bundle and 'text/markdown' not in bundle:
        return show_json(bundle['application/json'])
    if 'text/markdown' in bundle:
        return say(str(bundle['text/markdown']))
    html_text = bundle.get('text/html')
    has_table = isinstance(html_text, str) and '<table' in html_text.lower()
    if not has_table and 'text/plain' in bundle:
        return say(str(bundle['text/plain']))
    has_own_text = not is_bare and type(value).__repr__ is not object.__repr__
    if isinstance(html_text, str) and (has_table or not has_own_text):
        return say(html_to_markdown(html_text))
    say(plain(value))
