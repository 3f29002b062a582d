#!/usr/bin/env python3
"""Plants a fault of every kind in a small house and sees that the check finds it, and finds nothing in the sound house."""
import contextlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import check_house  # noqa: E402
from house import table  # noqa: E402

TABLE = '''# order
molly_module(ground   base   "how do we fail? (errors)")  # nothing below
molly_module(ground   policy "where may this go?"      USES base LINKS fmt::fmt)
molly_module(machines net    "every socket"            USES base policy)
molly_module(machines engine "how does a model run?"   USES base)
molly_module(action   router "who should answer?"      USES policy net
                                                       TEST_USES engine)
'''
HOUSE = {
    'src/CMakeLists.txt': TABLE,
    'src/ground/base/error.h': '#pragma once\nnamespace molly {\nclass Error {};\n}\n',
    'src/ground/policy/permit.h': '#pragma once\n#include "base/error.h"\nnamespace molly::policy {\nclass Permit {};\n}\n',
    'src/machines/net/connector.h': '#pragma once\n#include <sys/socket.h>\n#include "base/error.h"\n#include "policy/permit.h"\n'
                                    'namespace molly::net {\nclass Connector {};\n}\n',
    'src/machines/engine/engine.cc': '#include <llama.h>\n#include "base/error.h"\nnamespace molly::engine {\n}\n',
    'src/machines/engine/internal/batch.h': '#pragma once\n',
    'src/action/router/router.cc': '#include "net/connector.h"\n#include "policy/permit.h"\nnamespace molly::router {\n'
                                   'using Map = std::map<int, char>;\n'
                                   'int sound(int n) {\n    auto f = [n](int m) { return m + n; };\n    return f(1)[0];\n}\n}\n',
    'src/action/router/router_test.cc': '#include "engine/engine.h"\n',
}
ROUTER = 'src/action/router/router.cc'
NET = 'src/machines/net/connector.h'
POLICY = 'src/ground/policy/permit.h'

# (what is planted, file, text added at its end, what the check must say)
PLANTED = [
    ('undeclared include', POLICY, '#include "net/connector.h"', 'policy does not declare that it uses net'),
    ('undeclared angle include', POLICY, '#include <net/connector.h>', 'policy does not declare that it uses net'),
    ('undeclared include of a test', 'src/machines/net/net_test.cc', '#include "engine/engine.h"', 'net does not declare'),
    ('test edge used by the product', ROUTER, '#include "engine/engine.h"', 'router does not declare that it uses engine'),
    ('private header', 'src/action/router/router_test.cc', '#include "engine/internal/batch.h"', 'private to engine'),
    ('parent folder', ROUTER, '#include "../net/connector.h"', 'not ..'),
    ('bare quoted include', ROUTER, '#include "router.h"', 'names no module'),
    ('socket header', ROUTER, '#include <boost/asio/ip/tcp.hpp>', 'sockets live in net'),
    ('quoted socket header', ROUTER, '#include "sys/socket.h"', 'sockets live in net'),
    ('Beast', ROUTER, '#include <boost/beast/http.hpp>', 'sockets live in net'),
    ('llama.cpp', ROUTER, '#include <llama.h>', 'llama.cpp lives in'),
    ('llama.cpp common', ROUTER, '#include <chat.h>', 'llama.cpp lives in'),
    ('SQLite', ROUTER, '#include <sqlite3.h>', 'databases live in store'),
    ('process header', ROUTER, '#include <spawn.h>', 'child processes live in process'),
    ('OpenSSL', ROUTER, '#include <openssl/ssl.h>', 'TLS lives in net'),
    ('foreign namespace', ROUTER, 'namespace molly::policy {\n}', 'opens the namespace molly::policy'),
    ('plain namespace', ROUTER, 'namespace molly {\n}', 'opens the namespace molly'),
    ('nested foreign namespace', ROUTER, 'namespace policy {\n}', 'opens the namespace of policy'),
    ('reinterpret_cast', ROUTER, 'auto p = reinterpret_cast<int*>(q);', 'could forge a permit'),
    ('bit_cast', ROUTER, 'auto p = std::bit_cast<Permit>(q);', 'could forge a permit'),
    ('cast through void', ROUTER, 'auto p = static_cast<Permit*>(static_cast<void*>(q));', 'could forge a permit'),
    ('braces in co_await', ROUTER, 'Task<void> f() { co_await g(Key{1, 2}); }', 'braces inside a co_await'),
    ('conditional in co_await', ROUTER, 'Task<void> f() { co_await g(a ? b() : c()); }', 'a conditional inside a co_await'),
    ('plain braces in co_await', ROUTER, 'Task<void> f() {\n    co_await Key{1};\n}', 'braces inside a co_await'),
    ('lambda on the spot', ROUTER, 'auto t = [&]() -> Task<void> { co_return; }();', 'called on the spot'),
    ('generic lambda on the spot', ROUTER, 'auto t = [x]<class T>(T y) -> Task<void> { co_await y; }(1);', 'called on the spot'),
    ('lambda in parentheses on the spot', ROUTER, 'auto t = ([x]() -> Task<void> { co_return; })();', 'called on the spot'),
    ('co_spawn', ROUTER, 'void f() { boost::asio::co_spawn(io, g, h); }', 'only co_spawn'),
    ('std::format', ROUTER, 'auto s = std::format("{}", 1);', 'use fmt'),
    ('detach', ROUTER, 'void f() { thread.detach(); }', 'detached thread'),
    ('test back door', POLICY, 'FRIEND_TEST(A, b);', 'no back door'),
    ('banned type name', ROUTER, 'class TargetManager {};', '"manager" says nothing'),
    ('banned file name', 'src/action/router/string_util.cc', '', '"util" says nothing'),
    ('long file', ROUTER, '\n' * 501, 'more than 500 lines'),
    ('long function', ROUTER, 'void f(int n)\n{\n' + 'n++;\n' * 70 + '}', 'a function of 73 lines'),
    ('stranger at the root', 'third_party/x.c', '', 'third_party:1: nothing of this name'),
    ('folder that is no module', 'src/action/agents/agent.h', '', 'not declared as a module of action'),
    ('module in another band', 'src/ground/net/x.h', '', 'not declared as a module of ground'),
    ('stray band', 'src/extra/x/x.h', '', 'src holds the bands'),
    ('stray source', 'src/action/x.cc', '', 'code lives in a module'),
    ('source that nothing builds', 'src/action/router/deep/x.cc', '', 'internal/ only'),
    ('strange source', 'src/action/router/x.cpp', '', 'sources are .h and .cc'),
    ('folder of one machine', 'docs/a.md', 'see /wor' + 'k/main', 'a folder of one machine'),
    ('registry address', 'docs/a.md', 'http://deb.debia' + 'n.org/x', 'address of a registry'),
    ('open debt', ROUTER, '// TOD' + 'O: later', 'open debt'),
    ('wrong map', 'ARCHITECTURE.md', '| ground | `extra` | why? | – |', 'the module table has 6 rows'),
    ('use of nothing', 'src/CMakeLists.txt', 'molly_module(action agents "x" USES net)', 'agents'),
    ('band out of order', 'src/CMakeLists.txt', 'molly_module(ground late "x")', 'late of ground stands below'),
    ('use before declaration', 'src/CMakeLists.txt', 'molly_module(action early "x" USES later)', 'not declared before it'),
]
# (module, C++ that its archive holds, what the check must say)
LINKED = [
    ('router', 'extern "C" int connect(int, const void*, unsigned); int f() { return connect(0, nullptr, 0); }', 'connect: only net'),
    ('router', 'extern "C" int socket(int, int, int); int f() { return socket(0, 0, 0); }', 'socket: only net'),
    ('router', 'extern "C" int getaddrinfo(); int f() { return getaddrinfo(); }', 'getaddrinfo: only net'),
    ('net', 'extern "C" int system(const char*); int f() { return system("ls"); }', 'system: only process'),
    ('net', 'extern "C" int execvpe(); int f() { return execvpe(); }', 'execvpe: only process'),
    ('net', 'extern "C" int posix_spawn(); int f() { return posix_spawn(); }', 'posix_spawn: only process'),
    ('net', 'extern "C" void* popen(); void* f() { return popen(); }', 'popen: only process'),
    ('net', 'extern "C" long syscall(long); long f() { return syscall(1); }', 'syscall: nobody'),
    ('router', 'extern "C" int sqlite3_open(); int f() { return sqlite3_open(); }', 'sqlite3_open: only store'),
    ('router', 'extern "C" int llama_decode(); int f() { return llama_decode(); }', 'llama_decode: only engine'),
    ('router', 'namespace boost::asio::detail::socket_ops { int poll(int); } int f() { return boost::asio::detail::socket_ops::poll(1); }',
     'only net'),
    ('engine', 'int common_download_file(int); int f() { return common_download_file(1); }', 'common_download_file'),
]


class CheckHouse(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name) / 'house'
        for name, content in HOUSE.items():
            self.write(name, content)
        self.write('tools/engine_symbols.txt', '# allowed\ncommon_token_to_piece  # text of a token\n')
        rows = table.architecture_rows(table.read_modules(self.root / 'src/CMakeLists.txt'))
        self.write('ARCHITECTURE.md', '| band | module | question | uses |\n|---|---|---|---|\n' + '\n'.join(rows) + '\n')

    def write(self, name, content):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        return path

    @contextlib.contextmanager
    def planted(self, name, addition):
        kept = self.root.with_name('kept')
        shutil.copytree(self.root, kept)
        path = self.root / name
        self.write(name, (path.read_text() if path.exists() else '') + addition + '\n')
        try:
            yield
        finally:
            shutil.rmtree(self.root)
            kept.rename(self.root)

    def archive(self, module, code):
        build = self.root / 'build'
        build.mkdir(exist_ok=True)
        source = build / f'{module}.cc'
        source.write_text(code)
        target = build / f'libmolly_{module}.a'
        target.unlink(missing_ok=True)
        subprocess.run(['g++', '-O0', '-c', source, '-o', build / f'{module}.o'], check=True)
        subprocess.run(['ar', 'qc', target, build / f'{module}.o'], check=True)
        return build

    def quiet_archives(self):
        build = self.archive('base', 'int quiet();')
        for module in table.read_modules(self.root / 'src/CMakeLists.txt'):
            (build / f'libmolly_{module}.a').write_bytes((build / 'libmolly_base.a').read_bytes())
        return build

    def test_finds_nothing_in_a_sound_house(self):
        self.assertEqual(check_house.find_faults(self.root), [])

    def test_finds_every_planted_fault(self):
        for what, name, addition, expected in PLANTED:
            with self.subTest(what):
                with self.planted(name, addition):
                    faults = '\n'.join(check_house.find_faults(self.root))
                self.assertIn(expected, faults)
                self.assertIn(Path(name).parts[0], faults)
        self.assertEqual(check_house.find_faults(self.root), [])

    def test_finds_a_declared_use_that_nothing_uses(self):
        self.write('src/CMakeLists.txt', TABLE.replace('USES policy net', 'USES base policy net'))
        self.assertIn('router declares base but includes nothing from it', '\n'.join(check_house.find_faults(self.root)))

    def test_finds_a_use_that_only_tests_have(self):
        self.write('src/CMakeLists.txt', TABLE.replace('USES policy net', 'USES policy net engine').replace('TEST_USES engine', ''))
        self.assertIn('only the tests of router include engine', '\n'.join(check_house.find_faults(self.root)))

    def test_refuses_an_empty_table_and_a_missing_map(self):
        (self.root / 'ARCHITECTURE.md').unlink()
        self.assertIn('ARCHITECTURE.md:1: is missing', check_house.find_faults(self.root))
        self.write('src/CMakeLists.txt', '')
        self.assertIn('the check saw nothing', check_house.find_faults(self.root)[0])

    def test_does_not_stumble_over_comments_and_strings(self):
        self.write(ROUTER, HOUSE[ROUTER] + '// reinterpret_cast<int>(x) { co_await T{}; }\n'
                   'const char* s = "co_spawn( reinterpret_cast"; auto z = std::bit_cast<std::uint32_t>(x); auto r = R"(bit_cast \' ")"; int n = 1\'000;\n'
                   'Task<void> f() {\n    for (auto x : {1, 2}) {\n        co_await g(x);\n    }\n'
                   '    if (co_await g(1)) {\n        co_return;\n    }\n}\n'
                   'void k() {\n    spawn(e, [x]() -> Task<void> { co_return; });\n    list[0](1);\n}\n')
        self.assertEqual(check_house.find_faults(self.root), [])

    def test_link_lock_finds_every_planted_call(self):
        build = self.quiet_archives()
        self.archive('net', 'extern "C" int connect(); int f() { return connect(); }')
        self.archive('engine', 'int common_token_to_piece(int); int f() { return common_token_to_piece(1); }')
        self.assertEqual(check_house.find_faults(self.root, build), [])
        for module, code, expected in LINKED:
            with self.subTest(code):
                archive = build / f'libmolly_{module}.a'
                sound = archive.read_bytes()
                self.archive(module, code)
                faults = '\n'.join(check_house.find_faults(self.root, build))
                archive.write_bytes(sound)
                self.assertIn(expected, faults)
                self.assertIn(archive.name, faults)

    def test_link_lock_finds_a_missing_archive(self):
        build = self.quiet_archives()
        (build / 'libmolly_net.a').unlink()  # has no sources, so it has no archive
        self.assertEqual(check_house.find_faults(self.root, build), [])
        (build / 'libmolly_router.a').unlink()
        self.assertIn('no archive of router', '\n'.join(check_house.find_faults(self.root, build)))


class ModuleOrder(unittest.TestCase):
    """The first lock: CMake refuses to configure a module that uses a later one."""

    def test_cmake_refuses_a_use_before_its_declaration(self):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            for name in ('low', 'high'):
                (root / 'src/ground' / name).mkdir(parents=True)
                (root / f'src/ground/{name}/{name}.cc').write_text('')
            lines = 'molly_module(ground {} "x"{})\n'
            sound = lines.format('low', '') + lines.format('high', ' USES low')
            knot = lines.format('low', ' USES high') + lines.format('high', '')
            module = Path(__file__).resolve().parents[1] / 'cmake/module.cmake'
            (root / 'CMakeLists.txt').write_text(
                f'cmake_minimum_required(VERSION 3.25)\nproject(x CXX)\ninclude({module})\nadd_subdirectory(src)\n')
            for text, fails in ((sound, False), (knot, True)):
                (root / 'src/CMakeLists.txt').write_text(text)
                done = subprocess.run(['cmake', '-S', root, '-B', root / 'build'], capture_output=True, text=True)
                self.assertEqual(done.returncode != 0, fails, done.stderr)
                if fails:
                    self.assertIn('uses high, which is not declared before it', re.sub(r'\s+', ' ', done.stderr))


if __name__ == '__main__':
    unittest.main()
