package recording

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"trunkline/config/encryption"
	"trunkline/internal/testservice/testdb"
)

// With an account's key and salt alone a stored recording is opened, and sealed under another key.
func TestOfflineOpensWhatTheServiceSealed(t *testing.T) {
	h := newEnv(t, Settings{}, testdb.SQLite(t))
	first, second := Offline{firstKey, "salt one"}, Offline{secondKey, "salt two"}
	h.configure(t, "acme", encryption.Change{Enabled: true, Key: &first.Key, Salt: &first.Salt})
	audio := testAudio(100_000)
	checkError(t)(h.storeAudio("acme", "call-1", audio))
	file := must(os.ReadFile(h.objects(t)[0]))(t)

	var out bytes.Buffer
	in := must(first.Open(&out, bytes.NewReader(file)))(t)
	if !bytes.Equal(out.Bytes(), audio) || in.RecordingID != "call-1" || in.KeyID != "key_auto_acme" ||
		in.Size != 100_000 {
		t.Errorf("%+v", in)
	}
	if m := must(h.Metadata(t.Context(), "acme", "call-1"))(t); m.Salt != in.Salt ||
		m.KeyVersion != int64(in.KeyVersion) || m.Algorithm != in.Algorithm {
		t.Errorf("%+v and %+v differ", m, in)
	}
	if _, err := second.Open(&out, bytes.NewReader(file)); err == nil {
		t.Error("opened with another key")
	}

	var moved, again bytes.Buffer
	must(first.Reseal(&moved, bytes.NewReader(file), second, "key_auto_acme", 2))(t)
	must(second.Open(&again, bytes.NewReader(moved.Bytes())))(t)

	if !bytes.Equal(again.Bytes(), audio) || must(Inspect(&moved))(t).KeyVersion != 2 {
		t.Error("moved wrongly")
	}
}

func TestOfflineSealIsRefusedWithoutWhatAHeaderNeeds(t *testing.T) {
	as := SealParams{AccountID: "acme", RecordingID: "r", KeyID: "k", KeyVersion: 1}
	for name, try := range map[string]func() error{
		"no key": func() error {
			_, err := Offline{"", "s"}.Seal(new(bytes.Buffer), strings.NewReader("x"), as)
			return err
		},
		"no salt": func() error {
			_, err := Offline{"k", ""}.Seal(new(bytes.Buffer), strings.NewReader("x"), as)
			return err
		},
		"no account": func() error {
			_, err := Offline{"k", "s"}.Seal(new(bytes.Buffer), strings.NewReader("x"),
				SealParams{RecordingID: "r", KeyID: "k", KeyVersion: 1})
			return err
		},
		"wrong algorithm": func() error {
			a := as
			a.Algorithm = "ROT13"
			_, err := Offline{"k", "s"}.Seal(new(bytes.Buffer), strings.NewReader("x"), a)
			return err
		},
		"not a recording": func() error { _, err := Inspect(strings.NewReader("RIFF")); return err },
		"nothing to open": func() error {
			_, err := Offline{"k", "s"}.Open(new(bytes.Buffer),
				strings.NewReader(""))
			return err
		},
	} {
		if err := try(); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
