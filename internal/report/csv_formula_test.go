package report

import "testing"

// What a spreadsheet would run gets an apostrophe, in every form that one reads as the sign.
func TestFormulasAreDisarmed(t *testing.T) {
	for text, want := range map[string]string{
		"=1+1": `'=1+1`, "+1": "'+1", "-1": "'-1", "@SUM": "'@SUM", "\t=1": "'\t=1", "\r=1": "\"'\r=1\"",
		"\n=1": "\"'\n=1\"",
		"＝1+1": "'＝1+1", "＋1": "'＋1", "－1": "'－1", "＠SUM": "'＠SUM",
		"Anna": "Anna", "": "", "1+1": "1+1", "é=": "é=",
	} {
		if got := string(AppendText(nil, text)); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
