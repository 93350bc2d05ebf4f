package svc_test

import (
	"testing"

	"trunkline/format/svc"
	"trunkline/normalizer/golden"
)

func TestGolden(t *testing.T) { golden.Test(t, svc.Source) }
