"""The third lock: whatever the headers say, what does each module's archive ask the linker for?"""
import re
import subprocess

# Who may reference a symbol that matches. Demangled names for C++, plain names for C.
_RULES = [
    (r'(socket|socketpair|connect|accept4?|bind|listen|getaddrinfo|getnameinfo|gethostbyname\w*|res_\w+|sendto|'
     r'sendm?msg|recvfrom|recvm?msg|send|recv)', {'net'}),
    (r'boost::asio::detail::(socket_ops|reactive_socket|reactive_descriptor|io_uring_socket|resolve)\w*\b.*', {'net'}),
    (r'(fork|vfork|_Fork|clone3?|exec(l|le|lp|v|ve|vp|vpe)|fexecve|execveat|posix_spawnp?|popen|system|wordexp)', {'process'}),
    (r'(syscall|io_uring_\w+)', set()),
    (r'(dlopen|dlmopen|dlsym)', {'engine'}),
    (r'sqlite3_\w+', {'store'}),
    (r'(llama|ggml|gguf|mtmd)_\w+', {'engine', 'train'}),
]
_COMPILED_RULES = [(re.compile(pattern), owners) for pattern, owners in _RULES]
_COMMON = re.compile(r'(common_\w+|string_format|json_schema_to_grammar|build_grammar)\b')
# Compiles Asio's own functions once for everybody (BOOST_ASIO_SEPARATE_COMPILATION) and holds nothing else.
ASIO_OBJECT = re.compile(r'^asio(_\w+)?\.cc\.o$')


def undefined_symbols(archive):
    """Yields (object, symbol) for everything that an archive needs from outside each of its objects."""
    done = subprocess.run(['nm', '--undefined-only', '--demangle', str(archive)], capture_output=True, text=True)
    if done.returncode != 0:
        raise OSError(f'nm cannot read {archive}: {done.stderr.strip()}')
    member = ''
    for line in done.stdout.splitlines():
        if line.endswith(':'):
            member = line[:-1]
        else:
            match = re.match(r'\s+[Uw] (.+)', line)
            if match:
                yield member, match.group(1)


def _owners(symbol, engine_symbols):
    for pattern, owners in _COMPILED_RULES:
        if pattern.fullmatch(symbol):
            return owners
    common = _COMMON.match(symbol)
    if common and common.group(1) not in engine_symbols:
        return set()
    return {'engine'} if common else None


def _has_sources(folder):
    return any(not path.stem.endswith('_test') for path in folder.rglob('*.cc'))


def link_faults(modules, build, root):
    """Faults as text, one per archive and symbol. A missing archive is a fault: a lock that sees nothing is open."""
    allowed = root / 'tools/engine_symbols.txt'
    lines = allowed.read_text().splitlines() if allowed.exists() else []
    engine_symbols = {line.split('#')[0].strip() for line in lines} - {''}
    for name, module in modules.items():
        archives = list(build.rglob(f'libmolly_{name}.a'))
        if not archives and _has_sources(root / 'src' / module.band / name):
            yield f'{build}: no archive of {name}: the link lock saw nothing of it'
        for archive in archives:
            seen = set()
            for member, symbol in undefined_symbols(archive):
                if ASIO_OBJECT.match(member):
                    continue
                owners = _owners(symbol, engine_symbols)
                if owners is not None and name not in owners and symbol not in seen:
                    seen.add(symbol)
                    yield f'{archive.name}({member}): {name} asks the linker for {symbol}: ' + (
                        f'only {" and ".join(sorted(owners))} may' if owners else 'nobody may')
