package limitprefix

import "testing"

func TestNetworks(t *testing.T) {
	for address, want := range map[string]Prefixes{
		"192.0.2.7":              {Host: "192.0.2.7"},
		"::ffff:192.0.2.7":       {Host: "192.0.2.7"},
		"2001:db8:1:2ab:3:4:5:6": {"2001:db8:1:2ab::/64", "2001:db8:1:200::/56"},
		"2001:db8:1:2ff::1":      {"2001:db8:1:2ff::/64", "2001:db8:1:200::/56"},
		"2001:db8:1:300::1":      {"2001:db8:1:300::/64", "2001:db8:1:300::/56"},
		"fe80::1%eth0":           {"fe80::/64", "fe80::/56"},
		"not an address":         {Host: "not an address"},
		"":                       {},
	} {
		if got := Of(address); got != want {
			t.Errorf("%q: %+v, want %+v", address, got, want)
		}
	}
}
