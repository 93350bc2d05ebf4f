package number

import "testing"

func TestAbroad(t *testing.T) {
	plan, err := NewPlan(
		Settings{Country: "DE", AccountCountry: []string{"acme=US", "toronto=CA", "rome=IT", "moscow=RU"}})
	if err != nil {
		t.Fatal(err)
	}

	for _, c := range []struct {
		account, dialled string
		want             bool
	}{
		{"demo", "1002", false}, {"demo", "110", false}, {"demo", "*98", false}, {"demo", "ai-8f14e45f", false},
		{"demo", "alice", false}, {"demo", "c0ffee00-1234-4567-8901-0123456789ab", false}, {"demo", "", false},
		{"demo", "sip:alice@demo.local", false}, {"demo", "sip:1002@10.20.30.40", false}, {"demo", "room-12", false},
		{"demo", "tel:110", false},
		{"demo", "030123456", false}, {"demo", "030 / 123-456", false}, {"demo", "+49 30 123456", false},
		{"demo", "004930123456", false},
		{"demo", "4930123456", false}, {"demo", "30123456", false}, {"demo", "01512345678", false},
		{"demo", "08001234567", false},
		{"acme", "5551230001", false}, {"acme", "15551230001", false}, {"acme", "+12125551234", false},
		{"acme", "(212) 555-1234", false},
		{"acme", "18005551234", false}, {"toronto", "18005551234", false}, {"toronto", "4165551234", false},
		{"rome", "0612345678", false}, {"moscow", "84951234567", false},

		{"demo", "+88216123456", true}, {"demo", "0088216123456", true}, {"demo", "00 882-16 (123456)", true},
		{"demo", "0 0 8 8 2 1 6 1 2 3 4 5 6", true},
		{"demo", "+15551230001", true}, {"demo", "0015551230001", true}, {"demo", "+43123456789", true},
		{"demo", "0041441234567", true},
		{"demo", "+99912345678", true}, {"demo", "0099912345678", true}, {"demo", "+", true},
		{"demo", "0012345678901234567890", true},
		{"demo", "*31#0088216123456", true}, {"demo", "*310088216123456", true}, {"demo", "#31#0041441234567", true},
		{"demo", "００８８２１６１２３４５６", true}, {"demo", "＋88216123456", true}, {"demo", "٠٠٨٨٢١٦١٢٣٤٥٦", true},
		{"demo", "00\u200b88216123456", true},
		{"demo", "0088216123456;phone-context=x", true}, {"demo", "0088216123456@evil", true},
		{"demo", "*31%230088216123456", true}, {"demo", "%30%30882161234", true}, {"demo", "1,0088216123456", true},
		{"demo", "w0088216123456", true}, {"demo", "tel:+88216123456", true}, {"demo", "sip:+88216123456@x", true},
		{"demo", "p0088216123456;x=y", true},
		{"demo", "010100088216123456", true}, {"demo", "1010000441632960961", true}, // a carrier's code before it
		{"demo", "88216123456789", true}, // a trunk that takes E.164 without the +
		{"acme", "0118821612345", true}, {"acme", "18765551234", true}, {"acme", "8765551234", true},
		{"acme", "+14165551234", true},
		{"acme", "0114930123456", true}, {"toronto", "2125551234", true}, {"moscow", "81049301234567", true},
		{"moscow", "+77172123456", true},
	} {
		if got := plan.Abroad(c.account, c.dialled); got != c.want {
			t.Errorf("%s dials %q: abroad %v, want %v", c.account, c.dialled, got, c.want)
		}
	}

	nowhere, err := NewPlan(Settings{})
	if err != nil {
		t.Fatal(err)
	}

	for dialled, want := range map[string]bool{
		"1002": false, "030123456": false, "2125551234": false, "alice": false,
		"+4930123456": true, "004930123456": true, "0114930123456": true, "88216123456789": true, "15551230001": true,
	} {
		if got := nowhere.Abroad("demo", dialled); got != want {
			t.Errorf("without a country %q: abroad %v, want %v", dialled, got, want)
		}
	}
}

func TestPremium(t *testing.T) {
	plan, err := NewPlan(Settings{Country: "DE", AccountCountry: []string{"acme=US"}})
	if err != nil {
		t.Fatal(err)
	}

	for _, c := range []struct {
		account, dialled string
		want             bool
	}{
		{"demo", "09001234567", true}, {"demo", "0900 1 234567", true}, {"demo", "+499001234567", true},
		{"acme", "19005551234", true}, {"acme", "9005551234", true},
		{"demo", "*31#09001234567", true}, {"demo", "09001234567;x", true},
		// digits too many
		{"demo", "0900123456789", true}, {"demo", "+4990012345678999", true}, {"demo", "09001234567899999", true},
		{"acme", "1900555123499", true},
		{"demo", "tel:09001234567", true}, {"demo", "0301234567890123", false},
		{"demo", "+88216123456", true}, {"demo", "0088216123456", true}, {"demo", "+8816123456789", true},
		{"demo", "+870773123456", true}, {"demo", "+979123456789", true},
		{"demo", "030123456", false}, {"demo", "+15551230001", false}, {"demo", "1002", false},
		{"demo", "alice", false}, {"demo", "", false},
	} {
		if got := plan.Premium(c.account, c.dialled); got != c.want {
			t.Errorf("%s dials %q: premium %v, want %v", c.account, c.dialled, got, c.want)
		}
	}
}

func FuzzAbroad(f *testing.F) {
	plan, err := NewPlan(Settings{Country: "DE"})
	if err != nil {
		f.Fatal(err)
	}

	for _, one := range []string{"+88216123456", "*31#00", "００", "\xff00", "1002", "00#+00", "A#+00000A0"} {
		f.Add(one)
	}

	f.Fuzz(func(t *testing.T, dialled string) {
		plain := Plain(dialled)
		if Plain(plain) != plain {
			t.Errorf("%q becomes %q, and then %q", dialled, plain, Plain(plain))
		}
		if !plan.Abroad("demo", dialled) && plan.Abroad("demo", plain) {
			t.Errorf("%q is abroad as %q only", dialled, plain)
		}
	})
}
