#!/usr/bin/env python3
"""A second implementation of Trunkline's sealed recordings, written from
docs/recording-format.md alone and kept to test that page and the Go code
against each other. It reads whole files into memory; use `trunkline recording`
for real work.

    trunkrec.py inspect FILE
    trunkrec.py open    FILE OUTPUT --key KEY --salt SALT
    trunkrec.py seal    FILE OUTPUT --key KEY --salt SALT --account A --recording R
                        --key-id K --key-version N [--suite 1|2] [--content-type T]

Needs Python 3.9 and the package `cryptography`. Exit status 1: refused, with
the reason on stderr.
"""
import argparse
import hashlib
import hmac
import json
import os
import re
import struct
import sys
import time

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

MAGIC = b"\x89TRKREC\n"
CHUNK = 65536
ITERATIONS = 600_000
ID = re.compile(rb"[A-Za-z0-9_.-]+")


class Refused(Exception):
    pass


def hkdf(secret, salt, info):
    prk = hmac.digest(salt or bytes(32), secret, "sha256")
    return hmac.digest(prk, info + b"\x01", "sha256")


def derived(data_key, label):
    return hkdf(data_key, b"", b"trunkline recording 1 " + label)


class Account:
    """An account's key and salt, stretched."""

    def __init__(self, key, salt, iterations):
        self.s = hashlib.sha256(b"trunkline recording 1 salt" + salt.encode()).digest()
        self.root = hashlib.pbkdf2_hmac("sha256", key.encode(), self.s, iterations, 32)

    def wrap_key(self, own_salt):
        return hkdf(self.root, own_salt, b"trunkline recording 1 wrap")

    def fingerprint(self, own_salt):
        return hmac.digest(own_salt, self.s, "sha256")[:16]


class GCM:
    overhead = minimum = 12 + 16

    def __init__(self, data_key):
        self.aead = AESGCM(derived(data_key, b"AES-256-GCM"))

    def seal(self, audio, place):
        nonce = os.urandom(12)
        return nonce + self.aead.encrypt(nonce, audio, place)

    def open(self, sealed, place):
        try:
            return self.aead.decrypt(sealed[:12], sealed[12:], place)
        except InvalidTag:
            return None


class CBC:
    overhead = minimum = 16 + 16 + 32

    def __init__(self, data_key):
        self.key = derived(data_key, b"AES-256-CBC")
        self.mac = derived(data_key, b"HMAC-SHA-256")

    def seal(self, audio, place):
        iv = os.urandom(16)
        pad = 16 - len(audio) % 16
        enc = Cipher(algorithms.AES(self.key), modes.CBC(iv)).encryptor()
        body = iv + enc.update(audio + bytes([pad]) * pad) + enc.finalize()
        return body + hmac.digest(self.mac, place + body, "sha256")

    def open(self, sealed, place):
        body, tag = sealed[:-32], sealed[-32:]
        if not hmac.compare_digest(tag, hmac.digest(self.mac, place + body, "sha256")):
            return None
        if len(body) % 16:
            return None
        dec = Cipher(algorithms.AES(self.key), modes.CBC(body[:16])).decryptor()
        padded = dec.update(body[16:]) + dec.finalize()
        pad = padded[-1]
        if not 1 <= pad <= 16 or padded[-pad:] != bytes([pad]) * pad:
            return None
        return padded[:-pad]


SUITES = {1: GCM, 2: CBC}


def place(core, index, final):
    return hashlib.sha256(core).digest() + struct.pack(">QB", index, final)


def take(data, at, n, what):
    if len(data) < at + n:
        raise Refused(f"cut short in the {what}")
    return data[at:at + n]


def parse(data):
    if data[:8] != MAGIC or len(data) < 57:
        raise Refused("not a sealed recording")
    version, suite, a, r, t, chunk, created = struct.unpack(">BBBBBIQ", data[8:25])
    if version != 1:
        raise Refused(f"version {version}")
    core = take(data, 0, 57 + a + r + t, "core")
    fixed = take(data, len(core), 118, "key block")
    block = take(data, len(core), 118 + fixed[117], "key block")
    checksum = take(data, len(core) + len(block), 32, "checksum")
    if hashlib.sha256(core + block).digest() != checksum:
        raise Refused("the header was altered")
    kdf, iterations, key_version = struct.unpack(">BII", block[:9])
    account, recording, content_type = core[57:57 + a], core[57 + a:57 + a + r], core[57 + a + r:]
    key_id = block[118:]
    if suite not in SUITES or chunk != CHUNK or kdf != 1:
        raise Refused(f"unknown suite {suite}, chunk size {chunk} or key derivation {kdf}")
    if not (1 <= a <= 64 and 1 <= r <= 128 and t <= 127 and 1 <= len(key_id) <= 128
            and key_version >= 1 and 600_000 <= iterations <= 10_000_000 and created < 2**63
            and all(ID.fullmatch(i) for i in (account, recording, key_id)) and recording[:1] != b"."
            and all(0x20 <= c <= 0x7E for c in content_type)):
        raise Refused("a field of the header is out of bounds")
    return {
        "core": core, "block": block, "length": len(core) + len(block) + 32, "suite": suite,
        "account": account.decode(), "recording": recording.decode(), "content_type": content_type.decode(),
        "created": created, "commitment": core[25:57], "iterations": iterations, "key_version": key_version,
        "key_id": key_id.decode(), "own_salt": block[9:41], "fingerprint": block[41:57], "box": block[57:117],
    }


def box_data(core, block):
    return hashlib.sha256(core).digest() + block[:57] + block[117:]


def open_recording(data, key, salt):
    h = parse(data)
    account = Account(key, salt, h["iterations"])
    if not hmac.compare_digest(account.fingerprint(h["own_salt"]), h["fingerprint"]):
        raise Refused("wrong salt")
    try:
        data_key = AESGCM(account.wrap_key(h["own_salt"])).decrypt(
            h["box"][:12], h["box"][12:], box_data(h["core"], h["block"]))
    except InvalidTag:
        raise Refused("wrong key, or the header was rewritten") from None
    if not hmac.compare_digest(derived(data_key, b"commitment"), h["commitment"]):
        raise Refused("the header was altered")

    cipher = SUITES[h["suite"]](data_key)
    full = CHUNK + cipher.overhead
    body = data[h["length"]:]
    count = max(1, -(-len(body) // full))
    audio = []
    for i in range(count):
        sealed, final = body[i * full:(i + 1) * full], i == count - 1
        if len(sealed) < cipher.minimum:
            raise Refused(f"chunk {i}: cut short")
        plain = cipher.open(sealed, place(h["core"], i, final))
        if plain is None:
            raise Refused(f"chunk {i}: altered, out of place or cut short")
        if len(plain) > CHUNK or not final and len(plain) != CHUNK or final and not plain and i > 0:
            raise Refused(f"chunk {i}: cut in a way that no writer cuts")
        audio.append(plain)
    return b"".join(audio)


def seal_recording(audio, key, salt, suite, account, recording, content_type, key_id, key_version):
    data_key = os.urandom(32)
    ids = [s.encode() for s in (account, recording, content_type)]
    core = (MAGIC + struct.pack(">BBBBBIQ", 1, suite, *map(len, ids), CHUNK, int(time.time() * 1000))
            + derived(data_key, b"commitment") + b"".join(ids))
    stretched = Account(key, salt, ITERATIONS)
    own_salt, nonce = os.urandom(32), os.urandom(12)
    before = struct.pack(">BII", 1, ITERATIONS, key_version) + own_salt + stretched.fingerprint(own_salt)
    after = bytes([len(key_id)]) + key_id.encode()
    aad = hashlib.sha256(core).digest() + before + after
    box = nonce + AESGCM(stretched.wrap_key(own_salt)).encrypt(nonce, data_key, aad)
    header = core + before + box + after
    out = [header, hashlib.sha256(header).digest()]
    cipher = SUITES[suite](data_key)
    count = max(1, -(-len(audio) // CHUNK))
    for i in range(count):
        out.append(cipher.seal(audio[i * CHUNK:(i + 1) * CHUNK], place(core, i, i == count - 1)))
    return b"".join(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("inspect", "open", "seal"):
        command = commands.add_parser(name)
        command.add_argument("file")
        if name != "inspect":
            command.add_argument("output")
            command.add_argument("--key", required=True)
            command.add_argument("--salt", required=True)
        if name == "seal":
            command.add_argument("--suite", type=int, choices=SUITES, default=1)
            command.add_argument("--content-type", default="")
            for field in ("account", "recording", "key-id"):
                command.add_argument(f"--{field}", required=True)
            command.add_argument("--key-version", type=int, required=True)
    args = parser.parse_args()
    with open(args.file, "rb") as f:
        data = f.read()
    if args.command == "inspect":
        shown = {k: v.hex() if isinstance(v, bytes) else v for k, v in parse(data).items() if k not in ("core", "block")}
        print(json.dumps(shown, indent=2))
        return
    if args.command == "open":
        result = open_recording(data, args.key, args.salt)
    else:
        result = seal_recording(data, args.key, args.salt, args.suite, args.account, args.recording,
                                args.content_type, args.key_id, args.key_version)
    with open(args.output, "wb") as f:
        f.write(result)


if __name__ == "__main__":
    try:
        main()
    except Refused as refused:
        sys.exit(f"trunkrec: {refused}")
