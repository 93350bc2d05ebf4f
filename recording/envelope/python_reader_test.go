package envelope

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
)

// python runs the second implementation. Without Python and its package
// cryptography the test is skipped, and with CI=true it fails.
func python(t *testing.T) func(args ...string) ([]byte, error) {
	t.Helper()
	if out, err := exec.Command("python3", "-c", "import cryptography").CombinedOutput(); err != nil {
		message := fmt.Sprintf(
			"NOT TESTED against the Python reader: python3 with the package cryptography is missing: %v %s", err, out)
		if os.Getenv("CI") == "true" {
			t.Fatal(message)
		}
		t.Skip(message)
	}

	return func(args ...string) ([]byte, error) {
		return exec.Command("python3", append([]string{"../reader/trunkrec.py"}, args...)...).CombinedOutput()
	}
}

func TestPythonOpensWhatGoSealed(t *testing.T) {
	if testing.Short() {
		t.Skip("starts Python for each case")
	}

	run, dir := python(t), t.TempDir()
	file, output := filepath.Join(dir, "sealed"), filepath.Join(dir, "audio")
	for _, suite := range suites {
		for _, n := range []int{0, 16, 2*ChunkSize + 17} {
			audio := randomAudio(n)
			whole := sealAudio(t, audio, testParams(suite))
			writeFile(t, file, whole)

			if out, err := run("open", file, output, "--key", testKey, "--salt", testSalt); err != nil {
				t.Fatalf("%v, %d bytes: %v\n%s", suite, n, err, out)
			}
			if got := readFile(t, output); !bytes.Equal(got, audio) {
				t.Errorf("%v, %d bytes: opened differently", suite, n)
			}

			whole[len(whole)-40] ^= 1
			writeFile(t, file, whole)
			if out, err := run("open", file, output, "--key", testKey, "--salt", testSalt); err == nil {
				t.Errorf("%v, %d bytes: opened an altered one\n%s", suite, n, out)
			}
		}
	}
}

func TestGoOpensWhatPythonSealed(t *testing.T) {
	if testing.Short() {
		t.Skip("starts Python for each case")
	}

	run, dir := python(t), t.TempDir()
	file, output := filepath.Join(dir, "audio"), filepath.Join(dir, "sealed")
	for _, suite := range suites {
		for _, n := range []int{0, 16, 2*ChunkSize + 17} {
			audio := randomAudio(n)
			writeFile(t, file, audio)
			if out, err := run("seal", file, output, "--key", testKey, "--salt", testSalt, "--suite",
				strconv.Itoa(int(suite)),
				"--account", "acme", "--recording", "rec-1", "--content-type", "audio/ogg", "--key-id", "key_auto_acme",
				"--key-version", "2"); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}

			var got bytes.Buffer
			h, _, err := Open(&got, bytes.NewReader(readFile(t, output)), Expected{"acme", "rec-1"}, testRootFinder)
			if err != nil || !bytes.Equal(got.Bytes(), audio) {
				t.Fatalf("%v, %d bytes: %v", suite, n, err)
			}

			if h.KeyVersion != 2 || h.ContentType != "audio/ogg" || h.Suite != suite {
				t.Errorf("header %+v", h)
			}
		}
	}
}

func writeFile(t *testing.T, file string, data []byte) {
	t.Helper()
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func readFile(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
