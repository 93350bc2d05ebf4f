package recording

import (
	"os"
	"testing"
	"time"

	"trunkline/internal/testservice/testdb"
)

func TestSweepTakesOnlyWhatNoRowNames(t *testing.T) {
	h := newEnv(t, Settings{}, testdb.SQLite(t))
	checkError(t)(h.storeAudio("acme", "call-1", testAudio(10)))
	checkError(t)(h.storeAudio(".dots", "call-1", testAudio(10)))

	orphan := h.dir + "/acme/call-1.abcdefghijklmnop.trkrec"
	strange := h.dir + "/acme/notes.txt"
	for _, file := range []string{orphan, strange} {
		check(t, os.WriteFile(file, []byte("x"), 0o600))
	}

	check(t, h.Sweep(t.Context(), time.Now().Add(-time.Hour)))
	if n := len(h.objects(t)); n != 4 {
		t.Errorf("%d objects: what is young may belong to an upload that is not done", n)
	}

	check(t, h.Sweep(t.Context(), time.Now().Add(time.Minute)))
	if _, err := os.Stat(orphan); err == nil {
		t.Error("the orphan is still there")
	}
	if n := len(h.objects(t)); n != 3 {
		t.Errorf("left: %v", h.objects(t))
	}
}
