package web

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var (
	colour = regexp.MustCompile(`--([a-z-]+): light-dark\(#([0-9a-f]{6}), #([0-9a-f]{6})\);`)
)

// TestContrast computes the contrast of text to its background (WCAG 2.2, 1.4.3: 4.5) and of
// graphical elements to theirs (1.4.11: 3), in both colour schemes.
func TestContrast(t *testing.T) {
	found := colour.FindAllStringSubmatch(sources(t, ".css")["base.css"], -1)
	pairs := map[string]float64{
		"on-accent on accent": 4.5, "accent on accent-soft": 4.5, "control on panel": 3, "accent on ground": 4.5,
		"good on panel": 4.5, "bad on sunken": 4.5,
	}

	for _, ground := range []string{"ground", "panel", "sunken"} {
		for _, text := range []string{"text", "muted", "accent", "bad"} {
			pairs[text+" on "+ground] = 4.5
		}
	}

	for _, tone := range []string{"good", "warn", "bad", "talk", "wrap", "rest"} {
		for _, text := range []string{tone, "text", "muted"} {
			pairs[text+" on "+tone+"-soft"] = 4.5
		}
		pairs[tone+" on panel"] = 4.5
	}

	for i := range 2 { // light, dark
		colours := map[string]float64{}
		for _, one := range found {
			colours[one[1]] = luminance(t, one[2+i])
		}

		for pair, least := range pairs {
			front, back, _ := strings.Cut(pair, " on ")
			a, okA := colours[front]
			b, okB := colours[back]
			if !okA || !okB {
				t.Fatalf("scheme %d lacks a colour of %s", i, pair)
			}
			if ratio := (max(a, b) + 0.05) / (min(a, b) + 0.05); ratio < least {
				t.Errorf("scheme %d: %s has %.2f, want %.1f", i, pair, ratio, least)
			}
		}
	}
}

func luminance(t *testing.T, hex string) float64 {
	t.Helper()
	sum := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		n, err := strconv.ParseUint(hex[2*i:2*i+2], 16, 8)
		if err != nil {
			t.Fatal(err)
		}

		part := float64(n) / 255
		if part <= 0.04045 {
			part /= 12.92
		} else {
			part = math.Pow((part+0.055)/1.055, 2.4)
		}

		sum += weight * part
	}

	return sum
}
