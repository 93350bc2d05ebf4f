package main

import (
	"os"
	"path/filepath"
	"testing"

	"aead.dev/minisign"
)

func TestSignature(t *testing.T) {
	public, private, err := minisign.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}

	dir := t.TempDir()
	t.Setenv("RELEASE_KEY_PASSWORD", "a password")
	encrypted, err := minisign.EncryptKey("a password", private)
	if err != nil {
		t.Fatal(err)
	}

	key, sums := filepath.Join(dir, "key"), filepath.Join(dir, "SHA256SUMS")
	write(t, key, encrypted)
	write(t, sums, []byte("0123  trunkline\n"))

	if err := run([]string{"sign", key, sums}); err != nil {
		t.Fatal(err)
	}

	signature, err := os.ReadFile(sums + ".minisig")
	if err != nil {
		t.Fatal(err)
	}

	if !minisign.Verify(public, []byte("0123  trunkline\n"), signature) {
		t.Error("the signature is not valid")
	}
	if minisign.Verify(public, []byte("0124  trunkline\n"), signature) {
		t.Error("the signature is valid for other content")
	}

	t.Setenv("RELEASE_KEY_PASSWORD", "another")
	if err := run([]string{"sign", key, sums}); err == nil {
		t.Error("signs with a wrong password")
	}
}
