package encryption

import (
	"strings"
	"testing"
)

func TestGuessableWordsAreNoKeys(t *testing.T) {
	for key, want := range map[string]bool{
		strings.Repeat("password", 4): true, strings.Repeat("changeme", 4): true,
		"PasswordPasswordPasswordPassword1": true,
		"default_encrypted_key2026":         true, "default_encrypted_key00000000000000": true,
		"DEFAULT_SALT123456789012345678901234": true,
		"test12345678901234567890123456789":    true, "password123password123password123": true,
		"changeme12345678901234567890123456": true,
		"passwordpasswordpasswordpass":       true,
		"password is not all of it, 8 words": false, "default_encrypted_key_of_acme_x9": false,
		"t7Yq2kLm9Zx4Vb1Nc6Rw3Pd8Hs5Gf0Ja": false, "test-acme-9f3c2e71d5b84a60": false,
	} {
		if got := isInsecureKey(key); got != want {
			t.Errorf("%q: insecure %v, want %v", key, got, want)
		}
	}
}

func TestInsecureKeys(t *testing.T) {
	for _, key := range []string{
		"default_encrypted_key", "default", "test", "default_salt", " TEST ", "Default_Encrypted_Key\t",
		strings.Repeat("a", 32), strings.Repeat("a", 500), strings.Repeat("é", 40), strings.Repeat(" ", 40),
		"  " + strings.Repeat("Z", 40) + " ",
		"01234567890123456789012345678901", "98765432109876543210987654321098", "56789012345678901234567890123456",
		"abcdefghijklmnopqrstuvwxyzabcdefghij", "ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFGHIJ",
		"zyxwvutsrqponmlkjihgfedcbazyxwvut",
		"abcdabcdabcdabcdabcdabcdabcdabcd", "123412341234123412341234123412341", "abcabcabcabcabcabcabcabcabcabcabcab",
		"0123456789abcdef0123456789abcdef", "0123456789abcdefghijklmnopqrstuvwxyz",
		"AbababABABababababABABABababababab",
		strings.Repeat("test", 8), strings.Repeat("default", 6), "αβγδεζηθικλμνξοπ",
	} {
		if !isInsecureKey(key) {
			t.Errorf("%q passes", key)
		}
	}

	for _, key := range []string{
		goodKey, otherKey, "", "default_encrypted_key_of_our_house_no_17",
		"0123456789abcdef0123456789abcdeX", "a0b1c2d3e4f5g6h7i8j9k0l1m2n3o4p5", "8f14e45fceea167a5a36dedd4bea2543",
	} {
		if isInsecureKey(key) {
			t.Errorf("%q is called insecure", key)
		}
	}
}
