#!/usr/bin/env python3
"""Shows a folder at another place, as a file system over a network does: every call can fail (EIO), or wait. What is to
happen is read from standard input, a word a line: well, fail, hang. Each word is answered by a line that repeats it; the
first call that fails or waits after it is told by the line "met"."""

import argparse
import errno
import os
import sys
import threading

import fusepy


class FaultyFolder(fusepy.Operations):
    """Read-only, and enough for a server's reads."""
    def __init__(self, source):
        self.source = source
        self.changed = threading.Condition()
        self.mood = "well"
        self.met = False

    def __call__(self, operation, *arguments):
        if operation not in ("init", "destroy", "release"):
            self.pass_or_fail()
        return super().__call__(operation, *arguments)

    def set_mood(self, mood):
        with self.changed:
            self.mood, self.met = mood, False
            print(mood, flush=True)
            self.changed.notify_all()

    def pass_or_fail(self):
        with self.changed:
            if self.mood != "well" and not self.met:
                self.met = True
                print("met", flush=True)
            self.changed.wait_for(lambda: self.mood != "hang")
            if self.mood == "fail":
                raise fusepy.FuseOSError(errno.EIO)

    def at(self, path):
        return os.path.join(self.source, path.lstrip("/"))

    def getattr(self, path, fh=None):
        status = os.lstat(self.at(path))
        return {name: getattr(status, name) for name in ("st_mode", "st_nlink", "st_uid", "st_gid", "st_size",
                                                         "st_atime", "st_mtime", "st_ctime", "st_ino")}

    def readdir(self, path, fh):
        return [".", "..", *os.listdir(self.at(path))]

    def readlink(self, path):
        return os.readlink(self.at(path))

    def open(self, path, flags):
        return os.open(self.at(path), flags)

    def read(self, path, size, offset, fh):
        return os.pread(fh, size, offset)

    def release(self, path, fh):
        os.close(fh)


def obey(folder):
    for line in sys.stdin:
        folder.set_mood(line.strip())
    folder.set_mood("well")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source")
    parser.add_argument("mountpoint")
    arguments = parser.parse_args()
    folder = FaultyFolder(arguments.source)
    threading.Thread(target=obey, args=[folder], daemon=True).start()
    # Nothing is remembered between two calls, so that each gets here.
    fusepy.FUSE(folder, arguments.mountpoint, foreground=True, ro=True, use_ino=True, direct_io=True, attr_timeout=0,
                entry_timeout=0, negative_timeout=0)


if __name__ == "__main__":
    main()
