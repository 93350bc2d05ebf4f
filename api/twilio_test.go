package api

import (
	"encoding/base64"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"trunkline/aisession"
	"trunkline/internal/fault"
)

func TestABotOfTwiliosEndsAndTransfersItsCall(t *testing.T) {
	e := newEnv(t)
	const path = "/2010-04-01/Accounts/AC1/Calls/CA7.json"
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte("AC1:token-1"))
	form := header{"Authorization": basic, "Content-Type": "application/x-www-form-urlencoded"}

	for name, c := range map[string]struct{ field, value, want string }{
		"the end":           {"Status", "completed", ""},
		"a hangup by TwiML": {"Twiml", "<Response><Hangup/></Response>", ""},
		"a number":          {"Twiml", "<Response><Dial>+4930123456</Dial></Response>", "+4930123456"},
		"a declaration, a space": {"Twiml",
			`<?xml version="1.0" encoding="UTF-8"?> <Response><Dial timeout="5"> 7000 </Dial></Response>`, "7000"},
		"a noun": {"Twiml", "<Response><Dial><Number>7000</Number></Dial></Response>", "7000"},
		"a SIP address": {"Twiml",
			"<Response><Dial><Sip>sip:7000@pbx.example.com;transport=tcp</Sip></Dial></Response>", "7000"},
		"what follows is late": {"Twiml", "<Response><Dial>7000</Dial><Say>Nobody is there</Say></Response>", "7000"},
	} {
		e.ai.updated = nil
		var got twilioCall
		e.ask(200, "POST", path, form, url.Values{c.field: {c.value}}.Encode(), &got)
		want := []aisession.CallUpdate{{CallSID: "CA7", SecretSHA256: aisession.SecretSHA256("token-1"),
			Destination: c.want}}
		if !reflect.DeepEqual(e.ai.updated, want) || got.SID != "CA7" || got.AccountSID != "AC1" || got.URI != path {
			t.Errorf("%s: asked for %+v, answered %+v", name, e.ai.updated, got)
		}
	}

	e.ai.updated = nil
	for body, field := range map[string]string{
		"": "Status", "Status=ringing": "Status", "Status=completed&Twiml=x": "Twiml",
		"Url=https%3A%2F%2Fexample.com": "Status",
		"Twiml=%3C":                     "Twiml",
		"Twiml=" + url.QueryEscape("<Response><Say>Hi</Say></Response>"):                 "Twiml",
		"Twiml=" + url.QueryEscape("<Response><Dial></Dial></Response>"):                 "Twiml",
		"Twiml=" + url.QueryEscape("<Response><Dial><Queue>q</Queue></Dial></Response>"): "Twiml",
		"Twiml=" + url.QueryEscape("<Dial>7000</Dial>"):                                  "Twiml",
	} {
		if w := e.do("POST", path, form, body); w.Code != 400 ||
			!strings.Contains(w.Body.String(), `"field":"`+field+`"`) {
			t.Errorf("%s: %d %s", body, w.Code, w.Body)
		}
	}

	e.ask(401, "POST", path, header{"Content-Type": form["Content-Type"]}, "Status=completed", nil)
	e.ask(415, "POST", path, header{"Authorization": basic}, "Status=completed", nil)
	e.ask(413, "POST", path, form, "Twiml="+strings.Repeat("a", 16<<10), nil)
	e.ask(400, "POST", path, form, "Status=completed"+strings.Repeat("&a=b", maxParameters), nil)

	if e.ai.updated != nil {
		t.Errorf("refused requests had %v done", e.ai.updated)
	}

	e.ai.refuse = fault.Unauthenticated("The password is not the provider's secret")
	e.ask(401, "POST", path, form, "Status=completed", nil)
	e.ai.refuse = fault.NotFound("Call not found")
	e.ask(404, "POST", path, form, "Status=completed", nil)
}

func FuzzTwiML(f *testing.F) {
	f.Add("<Response><Dial><Number>7000</Number></Dial></Response>")
	f.Fuzz(func(t *testing.T, document string) {
		to, err := parseTwiML(document)
		if err != nil && to != "" {
			t.Errorf("%q with %v", to, err)
		}
	})
}
