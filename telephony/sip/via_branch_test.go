package sip

import (
	"strings"
	"testing"
)

func TestOnlyOurBranchesAreRecognised(t *testing.T) {
	b := branchSigner{key: [32]byte{1}}
	other := branchSigner{key: [32]byte{2}}
	for name, c := range map[string]struct {
		via  string
		want bool
	}{
		"ours":          {b.newBranch() + ";rport", true},
		"a forged one":  {"z9hG4bKabcdefghijklmnopqrstuvwx", false},
		"of another":    {other.newBranch(), false},
		"a short one":   {"z9hG4bKabc", false},
		"none":          {"", false},
		"of bad base64": {"z9hG4bK" + strings.Repeat("!", 24), false},
	} {
		if got := b.isOurs([]byte("SIP/2.0 200 OK\r\nVia: SIP/2.0/UDP h;branch=" + c.via + "\r\n\r\n")); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
