package identity

import (
	"strings"
	"testing"
)

func TestPasswordHashesAreTheirOwnParameters(t *testing.T) {
	old := newPasswordHasher(Argon2{MemoryKiB: 16, Passes: 2, Lanes: 2}, 1)
	stored := must(old.Hash(t.Context(), "p\x00ß"))(t)
	if !strings.HasPrefix(stored, "$argon2id$v=19$m=16,t=2,p=2$") {
		t.Errorf("stored %q", stored)
	}

	for password, want := range map[string]bool{"p\x00ß": true, "p": false, "": false, "p\x00ß ": false} {
		if got, err := verifyPassword(stored, password); err != nil || got != want {
			t.Errorf("%q: %v, %v", password, got, err)
		}
	}

	if again := must(old.Hash(t.Context(), "p\x00ß"))(t); again == stored {
		t.Error("two hashes have one salt")
	}
}

// The reference implementation's own test vector (argon2 -id -t 2 -k 256 -p 1).
func TestPasswordHashOfTheReferenceImplementation(t *testing.T) {
	const stored = "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4"
	if ok, err := verifyPassword(stored, "password"); err != nil || !ok {
		t.Errorf("%v, %v", ok, err)
	}
}

func TestTheDefaultCostIsOWASPs(t *testing.T) {
	if cost := (Config{}).withDefaults().Argon2; cost != (Argon2{MemoryKiB: 19456, Passes: 2, Lanes: 1}) {
		t.Errorf("cost %+v", cost)
	}
}

func TestWhatIsNoHashIsAnErrorAndNoMatch(t *testing.T) {
	for _, stored := range []string{
		"", "secret", "$2a$10$abcdefghijklmnopqrstuv",
		"$argon2i$v=19$m=8,t=1,p=1$c29tZXNhbHQ$bmV1bnVuZHp3YW56aWdhYWE",
		"$argon2id$v=16$m=8,t=1,p=1$c29tZXNhbHQ$bmV1bnVuZHp3YW56aWdhYWE",
		"$argon2id$v=19$m=8,t=1,p=1x$c29tZXNhbHQ$bmV1bnVuZHp3YW56aWdhYWE",
		"$argon2id$v=19$m=4294967295,t=1,p=1$c29tZXNhbHQ$bmV1bnVuZHp3YW56aWdhYWE",
		"$argon2id$v=19$m=8,t=0,p=1$c29tZXNhbHQ$bmV1bnVuZHp3YW56aWdhYWE",
		"$argon2id$v=19$m=8,t=1,p=1$c2E$bmV1bnVuZHp3YW56aWdhYWE",
		"$argon2id$v=19$m=8,t=1,p=1$c29tZXNhbHQ$",
	} {
		if ok, err := verifyPassword(stored, ""); err == nil || ok {
			t.Errorf("%q: %v, %v", stored, ok, err)
		}
	}
}

func FuzzParseHash(f *testing.F) {
	f.Add("$argon2id$v=19$m=8,t=1,p=1$c29tZXNhbHQ$bmV1bnVuZHp3YW56aWdhYWE")
	f.Fuzz(func(t *testing.T, stored string) {
		cost, salt, sum, err := parseHash(stored)
		if err == nil && (cost.check() != nil || len(salt) < 8 || len(sum) < 16) {
			t.Fatalf("%q gave %v", stored, cost)
		}
	})
}
