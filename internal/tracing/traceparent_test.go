package tracing_test

import (
	"strings"
	"testing"

	"trunkline/internal/tracing"
)

func TestValid(t *testing.T) {
	for parent, want := range map[string]bool{
		good:                        true,
		"":                          false,
		strings.ToUpper(good):       false,
		"01" + good[2:]:             false,
		good + "-x":                 false,
		good[:54] + "\n":            false,
		good[:35] + "_" + good[36:]: false,
		"00-00000000000000000000000000000000-00f067aa0ba902b7-01": false,
		"00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01": false,
	} {
		if got := tracing.ValidTraceparent(parent); got != want {
			t.Errorf("Valid(%q) = %v", parent, got)
		}
	}
}

func TestSampled(t *testing.T) {
	for flags, want := range map[string]bool{"00": false, "01": true, "02": false, "03": true, "0a": false, "0b": true,
		"01-more": true} {
		if got := tracing.Sampled([]byte(good[:53] + flags)); got != want {
			t.Errorf("flags %s: %v", flags, got)
		}
	}
	if tracing.Sampled(nil) || tracing.Sampled([]byte(good[:54])) {
		t.Error("what is too short is sampled")
	}
}
