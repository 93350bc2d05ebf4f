package asterisk_test

import (
	"testing"

	"trunkline/format/asterisk"
	"trunkline/normalizer/golden"
)

func TestGolden(t *testing.T) { golden.Test(t, asterisk.Source) }
