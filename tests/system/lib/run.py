# SPDX-License-Identifier: MIT
"""run: scripts/servers: a command with private servers around it."""
import argparse
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

from .world import Servers


def addresses(servers, args):
    found = {"IDEMD_TEST_TMP": str(servers.tmp)}
    if args.kafka:
        found["IDEMD_TEST_KAFKA"] = servers.kafka.bootstrap
    if args.db:
        db = servers.db[args.db].create_database()
        found.update(IDEMD_TEST_DB=args.db, IDEMD_TEST_DB_HOST=db.host,
                     IDEMD_TEST_DB_PORT=str(db.port), IDEMD_TEST_DB_NAME=db.name,
                     IDEMD_TEST_DB_USER=db.user, IDEMD_TEST_DB_PASSWORD=db.password,
                     IDEMD_TEST_DB_SOCKET=str(db.server.socket))
    return found


def main():
    parser = argparse.ArgumentParser(prog="scripts/servers")
    parser.add_argument("--kafka", action="store_true")
    parser.add_argument("--db", choices=("mariadb", "mysql"))
    parser.add_argument("command", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    if not command:
        parser.error("no command")
    # Ended from outside, it must still end its servers.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    folder = pathlib.Path(tempfile.mkdtemp(prefix="idemd-servers-"))
    folder.chmod(0o755)
    servers = Servers(folder)
    try:
        environment = {**os.environ, **addresses(servers, args)}
        status = subprocess.run(command, env=environment, check=False).returncode
    except KeyboardInterrupt:
        status = 130
    finally:
        servers.close()
        shutil.rmtree(folder, ignore_errors=True)
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main())
