package sipcall

import "testing"

func TestUserOfAnAddressHeader(t *testing.T) {
	for header, want := range map[string]string{
		`"Bob" <sip:+4930123@example.com;user=phone>`: "+4930123",
		`<sips:+4930123;cpc=ordinary@example.com>`:    "+4930123",
		`<tel:+4930123;ext=5>`:                        "+4930123",
		`tel:+4930123`:                                "+4930123",
		`sip:1001@pbx`:                                "1001",
		``:                                            "",
		`<sip:example.com>`:                           "",
		`<mailto:bob@example.com>`:                    "",
		`nonsense`:                                    "",
	} {
		if got := headerUser(header); got != want {
			t.Errorf("%q: got %q, want %q", header, got, want)
		}
	}
}
