package own_test

import (
	"testing"

	"trunkline/format/own"
	"trunkline/normalizer/golden"
)

func TestGolden(t *testing.T) { golden.Test(t, own.Source) }
