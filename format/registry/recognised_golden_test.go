package registry_test

import (
	"testing"

	"trunkline/event"
	"trunkline/normalizer/golden"
)

// TestGoldenRecognised has records without the header that names their format.
func TestGoldenRecognised(t *testing.T) {
	golden.TestFile(t, "testdata/recognised/events.in.jsonl", event.TopicRaw, "")
}
