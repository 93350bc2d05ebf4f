package encryption

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"trunkline/internal/fault"
)

const (
	goodKey  = "correct horse battery staple, twice over"
	otherKey = "another fine key that nobody would ever guess"
)

func parse(t *testing.T, body string) (Change, []string) {
	t.Helper()
	var object map[string]json.RawMessage
	if err := json.Unmarshal([]byte(body), &object); err != nil {
		t.Fatalf("%s: %v", body, err)
	}

	c, err := ParseChange(object)
	if err == nil {
		return c, nil
	}

	return c, faultTexts(t, err)
}

// faultTexts lists a refusal's fields as "field code".
func faultTexts(t *testing.T, err error) (faults []string) {
	t.Helper()
	var f *fault.Error
	if !errors.As(err, &f) || f.Kind != fault.KindInvalid || f.Message != MessageUpdateFailed {
		t.Fatalf("not a refusal: %v", err)
	}

	for _, field := range f.Fields {
		if strings.Contains(field.Message, goodKey) {
			t.Errorf("the message shows the key: %s", field.Message)
		}
		faults = append(faults, field.Field+" "+field.Code)
	}

	return faults
}

func TestParseChangeNamesEveryFault(t *testing.T) {
	long := strings.Repeat("x7", 600)
	for _, c := range []struct {
		name, body string
		want       []string
	}{
		{"the least", `{"enabled":true}`, nil},
		{"everything", `{"enabled":true,"algorithm":"AES-256-CBC","key":"` + goodKey +
			`","salt":"s","key_version":2.0,"key_id":"k","historical_keys":{"1":"a"},"historical_salts":{}}`, nil},
		{"nothing", `{}`, []string{"enabled required"}},
		{"null", `{"enabled":null,"algorithm":null,"key":null,"salt":null,"key_version":null,"key_id":null,"historical_keys":null,"historical_salts":null}`,
			[]string{"enabled wrong_type", "algorithm wrong_type", "salt wrong_type", "key wrong_type",
				"key_version wrong_type", "key_id wrong_type", "historical_keys wrong_type",
				"historical_salts wrong_type"}},
		{"enabled as text", `{"enabled":"true"}`, []string{"enabled wrong_type"}},
		{"enabled as number", `{"enabled":1}`, []string{"enabled wrong_type"}},
		{"key as number", `{"enabled":true,"key":12345678901234567890123456789012}`, []string{"key wrong_type"}},
		{"salt as array", `{"enabled":true,"salt":["s"]}`, []string{"salt wrong_type"}},
		{"salt as object", `{"enabled":true,"salt":{}}`, []string{"salt wrong_type"}},
		{"version as text", `{"enabled":true,"key_version":"1"}`, []string{"key_version wrong_type"}},
		{"version with a fraction", `{"enabled":true,"key_version":1.5}`, []string{"key_version wrong_type"}},
		{"version beyond all", `{"enabled":true,"key_version":1e400}`, []string{"key_version wrong_type"}},
		{"history as array", `{"enabled":true,"historical_keys":[]}`, []string{"historical_keys wrong_type"}},
		{"history of numbers", `{"enabled":true,"historical_salts":{"1":1}}`, []string{"historical_salts wrong_type"}},
		{"history of null", `{"enabled":true,"historical_keys":{"1":null}}`, []string{"historical_keys wrong_type"}},
		{"unknown fields", `{"enabled":true,"kee":"x","Enabled":true}`, []string{"Enabled unknown", "kee unknown"}},
		{"31 characters", `{"enabled":true,"key":"` + goodKey[:31] + `"}`, []string{"key too_short"}},
		{"32 characters", `{"enabled":true,"key":"` + goodKey[:32] + `"}`, nil},
		{"32 characters of two bytes", `{"enabled":true,"key":"éàüößñçøåæþðéàüößñçøåæþðéàüößñçø"}`, nil},
		{"31 characters of two bytes", `{"enabled":true,"key":"éàüößñçøåæþðéàüößñçøåæþðéàüößñç"}`,
			[]string{"key too_short"}},
		{"an empty key", `{"enabled":true,"key":""}`, []string{"key too_short"}},
		{"an empty salt", `{"enabled":true,"salt":""}`, []string{"salt too_short"}},
		{"a huge key", `{"enabled":true,"key":"` + long + `"}`, []string{"key too_long"}},
		{"a huge salt", `{"enabled":true,"salt":"` + long + `"}`, []string{"salt too_long"}},
		{"a default key", `{"enabled":true,"key":"default"}`, []string{"key too_short", "key insecure_default"}},
		{"a plain key", `{"enabled":true,"key":"01234567890123456789012345678901"}`, []string{"key insecure_default"}},
		{"the default salt", `{"enabled":true,"salt":"default_salt"}`, []string{"salt insecure_default"}},
		{"the default salt, dressed up", `{"enabled":true,"salt":" Default_SALT\n"}`,
			[]string{"salt insecure_default"}},
		{"a wrong algorithm", `{"enabled":true,"algorithm":"aes-256-gcm"}`, []string{"algorithm unsupported"}},
		{"no algorithm", `{"enabled":true,"algorithm":""}`, []string{"algorithm unsupported"}},
		{"checked although disabled", `{"enabled":false,"key":"test","salt":"default_salt"}`,
			[]string{"salt insecure_default", "key too_short", "key insecure_default"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, got := parse(t, c.body)
			slices.Sort(got)
			slices.Sort(c.want)
			if !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestAnAnswerIsBoundedHoweverManyFieldsAreUnknown(t *testing.T) {
	body := map[string]json.RawMessage{"enabled": json.RawMessage("true")}
	for i := range 1000 {
		body[strings.Repeat("é", 500+i)] = json.RawMessage("1")
	}
	_, err := ParseChange(body)
	faults := fault.As(err).Fields
	if len(faults) != maxShownNames || len(faults[0].Field) > 200 {
		t.Errorf("%d faults, the first names %d bytes", len(faults), len(faults[0].Field))
	}
}

// Any body is either a change within the bounds or a refusal that names fields.
func FuzzParseChange(f *testing.F) {
	f.Add([]byte(`{"enabled":true,"key":"` + goodKey + `","historical_keys":{"1":"x"},"key_version":1}`))
	f.Add([]byte(`{"enabled":false,"salt":"default_salt","x":{}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var object map[string]json.RawMessage
		if json.Unmarshal(body, &object) != nil {
			return
		}

		c, err := ParseChange(object)
		if err != nil {
			if f := fault.As(err); f.Kind != fault.KindInvalid || len(f.Fields) == 0 {
				t.Fatalf("%v", err)
			}
			return
		}

		if c.Key != nil && len([]rune(*c.Key)) < minKeyLength {
			t.Fatalf("a key of %d characters", len([]rune(*c.Key)))
		}
	})
}
