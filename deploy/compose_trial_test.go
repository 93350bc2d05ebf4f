package deploy_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheTrialOfComposeSaysWhatIsMissing: Kafka is taken from the cache folder of make test, which may have none.
func TestTheTrialOfComposeSaysWhatIsMissing(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	trial, err := filepath.Abs("../.ci/compose/run.sh")
	if err != nil {
		t.Fatal(err)
	}

	output, err := exec.CommandContext(t.Context(), trial, filepath.Join(cache, "made")).CombinedOutput()
	if err == nil || !strings.Contains(string(output), "Kafka is missing") ||
		!strings.Contains(string(output), filepath.Join(cache, "trunkline")) {
		t.Errorf("it ended with %v and said\n%s", err, output)
	}

	made, err := filepath.Glob(filepath.Join(cache, "*"))
	if err != nil || len(made) > 0 {
		t.Errorf("it began nevertheless: %q, %v", made, err)
	}
}
