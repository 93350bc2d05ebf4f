package kazoo_test

import (
	"testing"

	"trunkline/format/kazoo"
	"trunkline/normalizer/golden"
)

func TestGolden(t *testing.T) { golden.Test(t, kazoo.Source) }
