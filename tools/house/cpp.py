"""Reads C++ just closely enough for the house rules: text without comments and strings, bodies, lambdas."""
import re

_LITERAL = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"([^()\\\s]{0,16})\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![\w])\'(?:\\.|[^\'\\\n])+\'', re.S)
_CONTROL = re.compile(r'\b(if|for|while|switch|catch|else|do|try|namespace|class|struct|union|enum|extern|requires|concept)\b')


def strip(text):
    """Blanks comments and literals, keeping every line where it was."""
    def blank(match):
        found = match.group()
        lines = '\n' * found.count('\n')
        return lines if found.startswith('/') else '""' + lines
    return _LITERAL.sub(blank, text)


def line_of(text, position):
    return text.count('\n', 0, position) + 1


def closing(text, start):
    """The position of the bracket that closes the one at start, or the end of the text."""
    pairs = {'(': ')', '{': '}', '[': ']'}
    depth, opener, closer = 0, text[start], pairs[text[start]]
    for i in range(start, len(text)):
        if text[i] == opener:
            depth += 1
        elif text[i] == closer:
            depth -= 1
            if depth == 0:
                return i
    return len(text)


def co_await_braces(text):
    """Lines where an aggregate or a lambda is born inside a co_await expression: GCC 12 destroys it twice."""
    for match in re.finditer(r'\bco_await\b', text):
        depth, i = 0, match.end()
        while i < len(text):
            c = text[i]
            if c == '(':
                depth += 1
            elif c == ')':
                depth -= 1
                if depth < 0:
                    break
            elif c in ';,' and depth == 0:
                break
            elif c == '{':
                if depth > 0 or re.search(r'[\w>]\s*$', text[match.end():i]):
                    yield line_of(text, match.start())
                break
            i += 1


def co_await_conditionals(text):
    """Lines where a co_await's arguments hold a conditional: GCC 12 destroys a temporary of it twice."""
    for match in re.finditer(r'\bco_await\b', text):
        depth, i = 0, match.end()
        while i < len(text) and depth >= 0 and not (text[i] in ';,' and depth == 0):
            depth += {'(': 1, ')': -1}.get(text[i], 0)
            if text[i] == '?' and depth > 0:
                yield line_of(text, match.start())
                break
            i += 1


def lambdas_called_on_the_spot(text):
    """Lines of capturing lambda coroutines that are called where they are written: they outlive their captures."""
    for match in re.finditer(r'\[', text):
        before = text[:match.start()].rstrip()
        if before and (before[-1].isalnum() or before[-1] in '_])[') and not re.search(r'\b(return|co_return|co_await|co_yield)$', before):
            continue  # a subscript or an attribute
        end = closing(text, match.start())
        if not text[match.start() + 1:end].strip():
            continue  # captures nothing
        i = end + 1
        head = re.compile(r'\s*(<[^{};]*?>)?\s*').match(text, i)
        i = head.end()
        if i < len(text) and text[i] == '(':
            i = closing(text, i) + 1
        tail = re.compile(r'[^;{}()\[\],]*(?:\([^()]*\))?[^;{}()\[\],]*').match(text, i)
        i = tail.end()
        if i >= len(text) or text[i] != '{':
            continue
        close = closing(text, i)
        body = text[i:close]
        if re.search(r'\bco_(await|return|yield)\b', body) and re.match(r'\s*\)*\s*\(', text[close + 1:close + 80]):
            called = text[close + 1:].lstrip()
            if called.startswith('(') or text[:match.start()].rstrip().endswith('('):
                yield line_of(text, match.start())


def function_bodies(text):
    """(first line, last line) of every outermost function body."""
    i = 0
    while i < len(text):
        if text[i] != '{':
            i += 1
            continue
        start = max(text.rfind(c, 0, i) for c in ';{}') + 1
        head = re.sub(r'^\s*#[^\n]*$', '', text[start:i], flags=re.M)
        if ')' in head and not _CONTROL.search(head.split('(')[0]):
            end = closing(text, i)
            yield line_of(text, start + len(text[start:i]) - len(text[start:i].lstrip())), line_of(text, end)
            i = end
        i += 1
