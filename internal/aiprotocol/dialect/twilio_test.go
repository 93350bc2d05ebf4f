package dialect

import (
	"net/http"
	"testing"
)

// TestTwiliosSignature compares with what twilio-python 9 (RequestValidator.compute_signature) gives for it:
// HMAC-SHA1 of address and token, in base64.
func TestTwiliosSignature(t *testing.T) {
	header := http.Header{}
	signTwilio(Config{Secret: "12345"}, "wss://myapp.com/media", header)
	if got := header.Get("X-Twilio-Signature"); got != "0R/oWJvDLic1/p7iG6VRvNkje8M=" {
		t.Errorf("signed %s", got)
	}
	if len(TwilioCallSID("s")) != 34 || TwilioCallSID("s") == TwilioCallSID("t") {
		t.Errorf("sid %s", TwilioCallSID("s"))
	}
}
