package masterkey

import (
	"bytes"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"trunkline/internal/fault"
)

func fileRing(t *testing.T) (*Keyring, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "master.key")
	k := openKeyring(t, Settings{File: file})
	if created, err := k.Create(); err != nil || !created {
		t.Fatalf("created %v, %v", created, err)
	}
	return k, file
}

func TestTheFileIsMadeOnceAndPrivate(t *testing.T) {
	file := filepath.Join(t.TempDir(), "master.key")
	empty := openKeyring(t, Settings{File: file})
	if _, err := empty.Seal([]byte("x")); fault.KindOf(err) != fault.KindUnavailable {
		t.Errorf("sealed without a key: %v", err)
	}
	if err := empty.Require("0011223344556677"); err == nil {
		t.Error("an empty ring has every key")
	}

	var created sync.Map
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			k, err := Open(Settings{File: file})
			if err == nil {
				var made bool
				made, err = k.Create()
				if made {
					created.Store(i, true)
				}
			}
			if err != nil {
				t.Error(err)
			}
		})
	}

	wg.Wait()
	count := 0
	created.Range(func(any, any) bool { count++; return true })

	if count != 1 {
		t.Errorf("%d of 4 made the file", count)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}

	sealed := sealSecret(t, empty, "x") // it follows
	if _, err := openKeyring(t, Settings{File: file}).Unseal(sealed); err != nil {
		t.Error(err)
	}
}

func TestARunningRingFollowsTheFile(t *testing.T) {
	cli, file := fileRing(t)
	server := openKeyring(t, Settings{File: file})
	before := sealSecret(t, server, "x")
	id, err := cli.AddKey()
	if err != nil {
		t.Fatal(err)
	}

	after := sealSecret(t, server, "x")
	if KeyID(after) != id || KeyID(before) == id {
		t.Errorf("sealed under %s, then %s; the new key is %s", KeyID(before), KeyID(after), id)
	}
	if _, err := server.Unseal(before); err != nil {
		t.Error(err)
	}
	if err := cli.RemoveUnused([]string{KeyID(before)}); err != nil {
		t.Fatal(err)
	}
	if _, err := openKeyring(t, Settings{File: file}).Unseal(before); err != nil {
		t.Errorf("a key in use was retired: %v", err)
	}

	if err := cli.RemoveUnused(nil); err != nil {
		t.Fatal(err)
	}
	if _, err := openKeyring(t, Settings{File: file}).Unseal(before); err == nil {
		t.Error("the old key is still in the file")
	}
	if data, err := os.ReadFile(file); err != nil || !bytes.HasPrefix(data, []byte(fileHeader)) {
		t.Errorf("the file's comment was lost: %v", err)
	}
}

func TestALostFileStopsSealingAndNotOpening(t *testing.T) {
	k, file := fileRing(t)
	sealed := sealSecret(t, k, "x")
	for name, lose := range map[string]func() error{
		"emptied": func() error { return os.WriteFile(file, []byte("# nothing\n"), 0o600) },
		"removed": func() error { return os.Remove(file) },
	} {
		if err := lose(); err != nil {
			t.Fatal(err)
		}
		if _, err := k.Seal([]byte("x")); fault.KindOf(err) != fault.KindUnavailable {
			t.Errorf("%s: sealed: %v", name, err)
		}
		if _, err := k.Unseal(sealed); err != nil {
			t.Errorf("%s: not opened: %v", name, err)
		}
	}
}
