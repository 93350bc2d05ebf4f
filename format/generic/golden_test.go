package generic_test

import (
	"testing"

	"trunkline/format/generic"
	"trunkline/normalizer/golden"
)

func TestGolden(t *testing.T) { golden.Test(t, generic.Source) }
