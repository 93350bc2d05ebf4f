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
