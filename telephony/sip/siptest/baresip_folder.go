package siptest

import (
	"os"
	"testing"
)

// BaresipFolder creates a temporary folder with a short path: baresip does not record a call where the name
// of the file, with the addresses of both parties, has more than 127 bytes.
func BaresipFolder(t testing.TB) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "baresip")
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if err := os.RemoveAll(folder); err != nil {
			t.Error(err)
		}
	})

	return folder
}
