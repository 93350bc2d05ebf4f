package recording

import (
	"crypto/fips140"
	"os"
	"os/exec"
	"testing"
)

// In Go's FIPS 140-3 mode algorithms that are not approved fail: stored keys, sealing
// and opening use none. (The clients of PostgreSQL and S3 are not part of this test.)
func TestRecordingsAreSealedInFIPSMode(t *testing.T) {
	const child = "RECORDING_FIPS"
	if os.Getenv(child) != "" {
		if !fips140.Enforced() {
			t.Fatal("not in FIPS mode")
		}
		return
	}

	cmd := exec.CommandContext(t.Context(), os.Args[0],
		"-test.run=^(TestRecordingsAreSealedInFIPSMode|TestARecordingLiesAsItsAccountSays|TestEveryOldRecordingOpensAfterRotations|TestPlaybackServesRanges|TestResealMovesOldRecordingsWhileTheyArePlayed)$/^(sqlite)?$")
	cmd.Env = append(os.Environ(), child+"=yes", "GODEBUG=fips140=only")

	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
