package fault

import (
	"errors"
	"fmt"
	"testing"
)

func TestKindSurvivesWrapping(t *testing.T) {
	err := fmt.Errorf("reading offset: %w", NotFound("no topic %q", "x"))
	if KindOf(err) != KindNotFound {
		t.Errorf("kind %q", KindOf(err))
	}
	if KindOf(errors.New("plain")) != KindInternal || KindOf(nil) != "" {
		t.Error("an error without a kind is internal, no error has none")
	}
}

func TestMessageDoesNotLeakItsCause(t *testing.T) {
	err := Internal(errors.New("password=hunter2"), "could not read")
	if As(err).Message != "could not read" {
		t.Errorf("message %q", As(err).Message)
	}
}
