package number

import "testing"

func TestNumbersInE164(t *testing.T) {
	plan, err := NewPlan(
		Settings{Country: "DE", AccountCountry: []string{"acme=US", "rome=IT", "madrid=ES", "london=GB", "moscow=RU"}})
	if err != nil {
		t.Fatal(err)
	}

	for _, c := range []struct{ account, dialled, want string }{
		{"demo", "030123456", "+4930123456"},
		{"demo", "030 / 123-456", "+4930123456"},
		{"demo", "004930123456", "+4930123456"},
		{"demo", "0015551230001", "+15551230001"},
		{"demo", "+4930123456", "+4930123456"},
		{"demo", "+49 30 123456", "+4930123456"},
		{"demo", "0151 23456789", "+4915123456789"},
		{"acme", "5551230001", "+15551230001"},
		{"acme", "(555) 123-0001", "+15551230001"},
		{"acme", "15551230001", "+15551230001"},
		{"acme", "0114930123456", "+4930123456"},
		{"rome", "0612345678", "+390612345678"},
		{"madrid", "912345678", "+34912345678"},
		{"london", "02071838750", "+442071838750"},
		{"moscow", "84951234567", "+74951234567"},

		{"demo", "1001", "1001"},
		{"demo", "110", "110"},
		{"demo", "030123", "030123"},     // may be an extension
		{"demo", "30123456", "30123456"}, // a subscriber of some area
		{"acme", "5551212", "5551212"},
		{"acme", "911", "911"},
		{"demo", "ai-8f14e45f", "ai-8f14e45f"},
		{"demo", "anonymous", "anonymous"},
		{"demo", "*98", "*98"},
		{"demo", "", ""},
		{"demo", "+", "+"},
		{"demo", "+49", "+49"},
		{"demo", "+99912345678", "+99912345678"},
		{"demo", "0123456789012345678901", "0123456789012345678901"},
		{"demo", "+1-800-FLOWERS", "+1-800-FLOWERS"}, // letters are a name here
	} {
		if got := plan.E164(c.account, c.dialled); got != c.want {
			t.Errorf("%s dials %q: got %q, want %q", c.account, c.dialled, got, c.want)
		}
	}
}

func TestNumbersWithoutACountry(t *testing.T) {
	plan, err := NewPlan(Settings{})
	if err != nil {
		t.Fatal(err)
	}

	for dialled, want := range map[string]string{
		"030123456": "030123456", "5551230001": "5551230001", "+49 30 123456": "+4930123456", "1001": "1001",
	} {
		if got := plan.E164("demo", dialled); got != want {
			t.Errorf("%q: got %q, want %q", dialled, got, want)
		}
	}
}

func FuzzE164(f *testing.F) {
	plan, err := NewPlan(Settings{Country: "DE", AccountCountry: []string{"acme=US"}})
	if err != nil {
		f.Fatal(err)
	}

	f.Add("+4930123456")
	f.Add("0015551230001")
	f.Add("\xff+1")

	f.Fuzz(func(t *testing.T, dialled string) {
		for _, account := range []string{"demo", "acme"} {
			once := plan.E164(account, dialled)
			if twice := plan.E164(account, once); twice != once {
				t.Errorf("%q becomes %q, and then %q", dialled, once, twice)
			}
		}
	})
}
