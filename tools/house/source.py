"""Rules for the sources of the modules: who includes whom, who may touch what, names, and hazards."""
import re

from house import cpp
from house.table import BANDS, reachable

# What only the named modules may include, and why.
_RESERVED = [
    (r'boost/asio/(ip|local|ssl|connect|generic|posix|basic_\w*(socket|acceptor|resolver)\w*)\b|boost/asio\.hpp|'
     r'boost/beast|boost/cobalt|sys/socket|sys/un\.h|netdb|netinet/|arpa/|net/if|ifaddrs|linux/(io_uring|netlink|vm_sockets)|'
     r'curl/|nghttp', {'net'}, 'sockets live in net'),
    (r'openssl/', {'net', 'seal'}, 'TLS lives in net, signatures in seal'),
    (r'sodium', {'seal'}, 'cryptography lives in seal'),
    (r'ggml|llama|gguf|mtmd|(common|chat|sampling|json-schema-to-grammar)\.h$|nlohmann/', {'engine', 'train'},
     'llama.cpp lives in engine and train'),
    (r'sqlite3\.h|libpq-fe\.h', {'store'}, 'databases live in store'),
    (r'boost/process|spawn\.h|sys/wait', {'process'}, 'child processes live in process'),
    (r'dlfcn\.h', {'engine'}, 'libraries are opened in engine'),
]
_CAST_OWNERS = {'engine', 'train', 'net', 'store', 'seal'}
# bit_cast to a number forges nothing; Number is what templates call one.
_NUMBER_CAST = re.compile(r'\bbit_cast<\s*(std::)?(u?int(8|16|32|64)_t|unsigned|int|float|double|char|Number)\s*>')
_FORGING_CAST = re.compile(r'\b(reinterpret_cast|const_cast|bit_cast)\b|static_cast<[^;]*>\(static_cast<(const )?void')
_BANNED_WORDS = {'manager', 'helper', 'helpers', 'util', 'utils', 'common', 'misc', 'info', 'data'}
_FUNCTION_LINES_MAX = 70
_INCLUDE = re.compile(r'\s*#\s*include\s*[<"]([^>"]+)[>"]')


def _words(name):
    """snake_case or PascalCase, as lower-case words."""
    return re.sub(r'([a-z0-9])([A-Z])', r'\1_\2', name).lower().split('_')


def _belongs(header, modules):
    top = header.split('/')[0]
    return top if '/' in header and top in modules else None


def _include_faults(module, modules, path, header, quoted):
    top = _belongs(header, modules)
    is_test = path.stem.endswith('_test')
    if '..' in header.split('/'):
        yield 'include by module path, not ..'
    elif top and top != module.name:
        if top not in module.uses and not (is_test and top in module.test_uses):
            yield f'{module.name} does not declare that it uses {top}'
        if '/internal/' in header:
            yield f'{header} is private to {top}'
    elif quoted and not top:
        yield f'"{header}" names no module: include as "module/header.h", foreign headers with <>'
    if not top:
        for pattern, owners, why in _RESERVED:
            if re.match(pattern, header) and module.name not in owners:
                yield f'{header}: {why}'


def _line_faults(module, modules, path, line):
    opened = re.match(r'\s*(?:inline\s+)?namespace\s+molly(?:::(\w+))?[\w:]*\s*\{', line)
    if opened and (opened.group(1) or 'base') != module.name and not (module.name == 'base'):
        yield f'{module.name} opens the namespace {opened.group(0).strip(" {").split()[-1]}: each module has its own'
    inner = re.match(r'\s*namespace\s+(\w+)[\w:]*\s*\{', line)
    if inner and inner.group(1) in modules and inner.group(1) != module.name:
        yield f'{module.name} opens the namespace of {inner.group(1)}'
    if module.name not in _CAST_OWNERS and _FORGING_CAST.search(_NUMBER_CAST.sub('', line)) \
            and 'policy' in reachable(modules, module.name):
        yield 'a cast that could forge a permit is allowed in ' + ', '.join(sorted(_CAST_OWNERS)) + ' and below policy only'
    if re.search(r'\bco_spawn\s*\(', line) and module.name != 'base':
        yield 'spawn() of base is the only co_spawn'
    if re.search(r'\bFRIEND_TEST\b', line):
        yield 'tests get permits from a real policy engine: there is no back door'
    if re.search(r'\bstd::(format|print|println)\b', line):
        yield 'GCC 12 has no std::format: use fmt'
    if re.search(r'\.detach\s*\(\s*\)', line):
        yield 'a detached thread outlives its owner: join it'
    for name in re.findall(r'\b(?:class|struct|enum class|enum|union|concept|using)\s+(\w+)', line):
        for word in sorted(_BANNED_WORDS & set(_words(name))):
            yield f'{name}: "{word}" says nothing; name what it is'


def _file_faults(module, path):
    if path.parent.name != module.name and not (path.parent.name == 'internal' and path.parent.parent.name == module.name):
        yield 1, 'the build sees a module\'s own folder and its internal/ only'
    if path.suffix not in ('.h', '.cc'):
        yield 1, 'sources are .h and .cc files'
    for word in sorted(_BANNED_WORDS & set(_words(path.stem))):
        yield 1, f'{path.name}: "{word}" says nothing; name what it is'
    if not re.fullmatch(r'[a-z0-9_]+', path.stem):
        yield 1, 'file names are snake_case'


def _body_faults(text):
    for line in cpp.co_await_braces(text):
        yield line, 'braces inside a co_await expression: name the value on the line above'
    for line in cpp.co_await_conditionals(text):
        yield line, 'a conditional inside a co_await expression: name the value on the line above'
    for line in cpp.lambdas_called_on_the_spot(text):
        yield line, 'a capturing lambda coroutine called on the spot outlives its captures: pass the lambda to spawn'
    for first, last in cpp.function_bodies(text):
        if last - first + 1 > _FUNCTION_LINES_MAX:
            yield first, f'a function of {last - first + 1} lines; {_FUNCTION_LINES_MAX} are the most'


def _scan(module, modules, path, used):
    yield from _file_faults(module, path)
    if path.suffix not in ('.h', '.cc'):
        return
    raw = path.read_text()
    text = cpp.strip(raw)
    for number, (line, bare) in enumerate(zip(raw.split('\n'), text.split('\n')), 1):
        included = _INCLUDE.match(line)
        if included:
            header = included.group(1)
            top = _belongs(header, modules)
            if top and top != module.name:
                used.setdefault(top, set()).add('test' if path.stem.endswith('_test') else 'product')
            for text_of_fault in _include_faults(module, modules, path, header, '"' in line):
                yield number, text_of_fault
        else:
            for text_of_fault in _line_faults(module, modules, path, bare):
                yield number, text_of_fault
    yield from _body_faults(text)


def folder_faults(src, modules):
    """Yields (path, line, fault): every folder a declared module in its band, every module a folder."""
    table = src / 'CMakeLists.txt'
    for entry in sorted(src.iterdir()):
        if entry.is_dir() and entry.name not in BANDS:
            yield entry, 1, f'src holds the bands {" ".join(BANDS)} only'
        elif entry.is_file() and entry.name != 'CMakeLists.txt':
            yield entry, 1, 'code lives in a module'
        elif entry.is_dir():
            for folder in sorted(entry.iterdir()):
                module = modules.get(folder.name)
                if not folder.is_dir():
                    yield folder, 1, 'code lives in a module'
                elif module is None or module.band != entry.name:
                    yield folder, 1, f'the folder is not declared as a module of {entry.name}'
    highest = 0
    for module in modules.values():
        if not (src / module.band / module.name).is_dir():
            yield table, module.line, f'there is no folder {module.band}/{module.name}'
        if module.band not in BANDS:
            yield table, module.line, f'there is no band {module.band}'
        elif BANDS.index(module.band) < highest:
            yield table, module.line, f'{module.name} of {module.band} stands below a higher band'
        else:
            highest = BANDS.index(module.band)


def source_faults(src, modules):
    """Yields (path, line, fault) for every file of every module, and for every declared edge that nothing uses."""
    declared = set()
    for module in modules.values():
        used = {}
        for path in sorted((src / module.band / module.name).rglob('*')):
            if path.is_file():
                for number, fault in _scan(module, modules, path, used):
                    yield path, number, fault
        for name in module.uses + module.test_uses:
            if name not in declared:
                yield src / 'CMakeLists.txt', module.line, f'{module.name} uses {name}, which is not declared before it'
            elif name not in used:
                yield src / 'CMakeLists.txt', module.line, f'{module.name} declares {name} but includes nothing from it'
            elif name in module.uses and used[name] == {'test'}:
                yield src / 'CMakeLists.txt', module.line, f'only the tests of {module.name} include {name}: say TEST_USES'
        declared.add(module.name)
