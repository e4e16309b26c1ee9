"""Signed manifests, and invalid signatures."""

import json

import plain_ed25519
import plain_scheme as scheme

from .inputs import stream
from .manifests import good_manifests, is_valid

# RFC 8032, section 7.1, TEST 1 to 3: seed, public key, message, signature.
RFC_8032 = (
    ("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
     "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
     "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46b"
     "d25bf5f0595bbe24655141438e7a100b"),
    ("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
     "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
     "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c"
     "387b2eaeb4302aeeb00d291612bb0c00"),
    ("c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
     "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", "af82",
     "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc659"
     "4a7c15e9716ed28dc027beceea1ec40a"))


def plus_order(signature):
    """The same signature in a form that RFC 8032 forbids: S is not below the order of the group."""
    s = int.from_bytes(signature[32:], "little") + plain_ed25519.L
    return signature[:32] + s.to_bytes(32, "little")


def ed25519_cases():
    cases = []
    for seed, key, message, signature in RFC_8032:
        assert plain_ed25519.public_key(bytes.fromhex(seed)).hex() == key
        assert plain_ed25519.sign(bytes.fromhex(seed), bytes.fromhex(message)).hex() == signature
        cases.append({"seed": seed, "public_key": key, "message": message, "signature": signature})
    _, key, message, signature = RFC_8032[2]
    wrong = []
    for why, *changed in (
            ("another message", key, "af83", signature),
            ("a longer message", key, "af8200", signature),
            ("another key", RFC_8032[0][1], message, signature),
            ("no point for a key", (2).to_bytes(32, "little").hex(), message, signature),
            ("R changed", key, message, "63" + signature[2:]),
            ("S changed", key, message, signature[:-2] + "0b"),
            ("S not below the order", key, message, plus_order(bytes.fromhex(signature)).hex()),
            ("zeros", key, message, "00" * 64)):
        assert not plain_ed25519.verify(*map(bytes.fromhex, changed)), why
        wrong.append(dict(zip(("reason", "public_key", "message", "signature"), (why, *changed))))
    return cases, wrong


def signature_file():
    good = good_manifests()
    seeds = [stream(f"vectors/signer/{i}", 32) for i in range(2)]
    cases = {"keyword": ("keyword-3", 1795545000, 1795545000), "first": ("packed-index", 1, 0),
             "last": ("index", 2**53 - 1, 2**53 - 1), "unknown-members": ("unknown-members", 7, 1795545000)}
    signed = {name: scheme.sign_manifest(good[base], seeds[0], sequence, time)
              for name, (base, sequence, time) in cases.items()}
    for name, (base, _, _) in cases.items():
        m = scheme.read_manifest(json.dumps(signed[name]).encode())
        assert m.is_signed and m.epoch == good[base]["epoch"]
    whole = signed["keyword"]

    def refused(change, members, **more):
        text = json.dumps(members)
        assert not is_valid(text), change
        return {"change": change, "text": text} | more

    def made_for(message, **members):
        return whole | members | {"signature": plain_ed25519.sign(seeds[0], message).hex()}

    text = scheme.signed_bytes(whole)
    wrong = [
        refused("sequence raised", whole | {"sequence": whole["sequence"] + 1}),
        refused("time changed", whole | {"time": whole["time"] - 1}),
        refused("another signer", whole | {"signer": plain_ed25519.public_key(seeds[1]).hex()}),
        refused("signed by another", whole | {"signature": plain_ed25519.sign(seeds[1], text).hex()}),
        refused("one digit of the signature changed",
                whole | {"signature": ("1" if whole["signature"][0] == "0" else "0") + whole["signature"][1:]}),
        refused("S not below the order",
                whole | {"signature": plus_order(bytes.fromhex(whole["signature"])).hex()}),
        refused("made for the text without its prefix", made_for(text[len("blindfuse/manifest/1"):])),
        refused("made for the text of the epoch", made_for(
            b"blindfuse/manifest/1" + scheme.epoch_text(whole).encode())),
        refused("made for another epoch", whole | {
            "signature": scheme.sign_manifest(good["index"], seeds[0], whole["sequence"], whole["time"])["signature"]}),
    ]
    invalid = []
    for name in scheme.SIGNATURE_MEMBERS:
        without = {k: v for k, v in whole.items() if k != name}
        if name != "signature":
            without |= {"signature": plain_ed25519.sign(seeds[0], scheme.signed_bytes(without)).hex()}
        invalid.append(refused(f"without {name}", without, member=name))
    for name, values in {"sequence": (0, -1, 2**53, 2**64 - 1, "1", ""),
                         "time": (-1, 2**53, 2**64 - 1, "0"),
                         "signer": (whole["signer"].upper(), whole["signer"][:-2], whole["signer"] + "00",
                                    "g" + whole["signer"][1:], "", 7)}.items():
        for value in values:
            members = whole | {name: value}
            members |= {"signature": plain_ed25519.sign(seeds[0], scheme.signed_bytes(members)).hex()}
            invalid.append(refused(f"{name} = {json.dumps(value)}, signed again", members, member=name))
    for value in (whole["signature"].upper(), whole["signature"][:-2], whole["signature"] + "00", "", 7):
        invalid.append(refused(f"signature = {json.dumps(value)}", whole | {"signature": value},
                               member="signature"))
    right, bad = ed25519_cases()
    return {"about": "Section 2, Signature. ed25519: of RFC 8032, section 7.1; ed25519_wrong: signatures that are "
                     "refused. signed: `text` is the JSON as a server sends it, signed with the private key `seed` "
                     "over `signed_text`. wrong: of the right form, and refused. invalid: each breaks one rule of the "
                     "form.",
            "ed25519": right, "ed25519_wrong": bad,
            "signed": [{"name": name, "seed": seeds[0].hex(), "text": json.dumps(m),
                        "signed_text": scheme.signed_bytes(m).decode(), "manifest": m} for name, m in signed.items()],
            "wrong": wrong, "invalid": invalid}
