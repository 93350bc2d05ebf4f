package freeswitch_test

import (
	"testing"

	"trunkline/format/freeswitch"
	"trunkline/normalizer/golden"
)

func TestGolden(t *testing.T) { golden.Test(t, freeswitch.Source) }
