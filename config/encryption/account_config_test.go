package encryption

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"testing"
)

// model implements the table of states of docs/api.md in long form: one case for each
// row, histories as the two objects of the response.
type model struct {
	configured, enabled bool
	algorithm           string
	key, salt           string
	version             int64
	keys, salts         map[string]string
}

// put returns the expected response; it takes a key or salt that the service generates
// from got.
func (m *model) put(c Change, got *Document) error {
	var key, salt string
	if c.Key != nil {
		key = *c.Key
	}
	if c.Salt != nil {
		salt = *c.Salt
	}
	if c.Algorithm != nil {
		m.algorithm = *c.Algorithm
	}

	m.configured, m.enabled = true, c.Enabled
	if c.Enabled && m.algorithm == "" {
		m.algorithm = "AES-256-GCM"
	}

	switch {
	case !c.Enabled:
		// Preserved.
	case m.version == 0:
		m.version, m.key, m.salt = 1, key, salt
		if key == "" {
			if len(got.Key) != 64 {
				return fmt.Errorf("made a key of %d characters", len(got.Key))
			}
			m.key = got.Key
		}

		if salt == "" {
			if len(got.Salt) != 24 {
				return fmt.Errorf("made a salt of %d characters", len(got.Salt))
			}
			m.salt = got.Salt
		}
	case key != "" && key != m.key || salt != "" && salt != m.salt:
		old := strconv.FormatInt(m.version, 10)
		m.keys[old], m.salts[old] = m.key, m.salt
		m.version++

		if key != "" {
			m.key = key
		}
		if salt != "" {
			m.salt = salt
		}
	}

	return m.compare(got)
}

func (m *model) compare(got *Document) error {
	if !m.configured {
		if got != nil {
			return fmt.Errorf("configured by nobody")
		}
		return nil
	}

	keyID := ""
	if m.version > 0 {
		keyID = "key_auto_account-"
	}

	if got.Enabled != m.enabled || got.Algorithm != m.algorithm || got.Key != m.key || got.Salt != m.salt ||
		got.KeyVersion != m.version || got.KeyID != keyID ||
		!maps.Equal(got.HistoricalKeys, m.keys) || !maps.Equal(got.HistoricalSalts, m.salts) {
		return fmt.Errorf("got %+v\nwant %+v, key id %q", *got, *m, keyID)
	}

	return nil
}

func newModel() *model { return &model{keys: map[string]string{}, salts: map[string]string{}} }

// randomChange draws from few values, so that keys repeat often.
func randomChange(r *rand.Rand, keyPool string) Change {
	c := Change{Enabled: r.IntN(3) > 0}
	if r.IntN(3) == 0 {
		c.Algorithm = new([]string{AES256GCM, AES256CBC}[r.IntN(2)])
	}
	if r.IntN(2) == 0 {
		c.Key = new(fmt.Sprintf("%s: a key that is long enough, no. %d", keyPool, r.IntN(4)))
	}
	if r.IntN(3) == 0 {
		c.Salt = new(fmt.Sprintf("salt %d", r.IntN(3)))
	}

	return c
}

func TestEverySequenceOfPutsFollowsTheTable(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 5))
		s, m := &accountConfig{accountID: "account-" + strconv.FormatUint(seed, 10)}, newModel()
		for step := range 40 {
			c := randomChange(r, "")
			if s.exists && r.IntN(3) == 0 { // GET, edit, PUT
				d := s.toDocument()
				c.HistoricalKeys, c.HistoricalSalts = d.HistoricalKeys, d.HistoricalSalts
				if d.KeyVersion > 0 {
					c.KeyVersion, c.KeyID = &d.KeyVersion, &d.KeyID
				}
			}

			before := s.toDocument()
			next, err := s.apply(c)
			if err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, step, err)
			}

			if fmt.Sprintf("%+v", *before) != fmt.Sprintf("%+v", *s.toDocument()) {
				t.Fatalf("seed %d, step %d: apply changed the old state", seed, step)
			}
			if err := m.put(c, next.toDocument()); err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, step, err)
			}

			s = next
		}
	}
}

func TestReadOnlyFieldsAreEchoedOrRefused(t *testing.T) {
	never := &accountConfig{accountID: "acme"}
	enabled, err := never.apply(Change{Enabled: true, Key: new(goodKey), Salt: new("s1")})
	if err != nil {
		t.Fatal(err)
	}

	rotated, err := enabled.apply(Change{Enabled: true, Key: new(otherKey)})
	if err != nil {
		t.Fatal(err)
	}

	for _, c := range []struct {
		name   string
		state  *accountConfig
		change Change
		want   []string
	}{
		{"empty histories of nothing", never,
			Change{HistoricalKeys: map[string]string{}, HistoricalSalts: map[string]string{}}, nil},
		{"a version of nothing", never, Change{KeyVersion: new(int64(0)), KeyID: new("")},
			[]string{"key_version read_only", "key_id read_only"}},
		{"an old version", rotated, Change{KeyVersion: new(int64(1))}, []string{"key_version read_only"}},
		{"another id", rotated, Change{KeyID: new("key_auto_other")}, []string{"key_id read_only"}},
		{"a history without its key", rotated, Change{HistoricalKeys: map[string]string{}},
			[]string{"historical_keys read_only"}},
		{"a history with another key", rotated, Change{HistoricalKeys: map[string]string{"1": otherKey}},
			[]string{"historical_keys read_only"}},
		{"a history too long", enabled, Change{HistoricalSalts: map[string]string{"1": "s1"}},
			[]string{"historical_salts read_only"}},
		{"all as it is", rotated, Change{KeyVersion: new(int64(2)), KeyID: new("key_auto_acme"),
			HistoricalKeys: map[string]string{"1": goodKey}, HistoricalSalts: map[string]string{"1": "s1"}}, nil},
	} {
		_, err := c.state.apply(c.change)
		var got []string
		if err != nil {
			got = faultTexts(t, err)
		}

		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestKeyIDTakesEightCharacters(t *testing.T) {
	for account, want := range map[string]string{"demo": "key_auto_demo", "0123456789": "key_auto_01234567",
		"ééééééééé": "key_auto_éééééééé"} {
		if got := KeyID(account); got != want {
			t.Errorf("%s: %s", account, got)
		}
	}
}
