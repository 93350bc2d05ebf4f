package api

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"

	"trunkline/aisession"
	"trunkline/internal/fault"
)

// CallUpdater updates calls whose AI provider is a bot written for Twilio.
type CallUpdater interface {
	// UpdateCall carries out an update of the call of a session on any node. It returns when the
	// update has begun. The error is fault.KindNotFound if no such session runs, and
	// fault.KindUnauthenticated for another secret.
	UpdateCall(ctx context.Context, u aisession.CallUpdate) error
}

// twilioRoutes has the request of Twilio's REST API that its bots send to end or transfer their call.
type twilioRoutes struct{ calls CallUpdater }

const twilioCallPath = "/2010-04-01/Accounts/:account_sid/Calls/:call_sid"

// maxParameters bounds the parameters of an update; Twilio's has some twenty.
const maxParameters = 100

// twilioCall has the members of Twilio's call resource that Trunkline knows.
type twilioCall struct {
	SID        string `json:"sid"`
	AccountSID string `json:"account_sid"`
	Status     string `json:"status"`
	APIVersion string `json:"api_version"`
	URI        string `json:"uri"`
}

// handleUpdate ends or transfers a call. The password of the Basic header is the provider's secret; the account
// SID in the path is not checked.
func (r twilioRoutes) handleUpdate(c echo.Context) error {
	_, password, ok := c.Request().BasicAuth()
	if !ok || password == "" {
		return fault.Unauthenticated("Send the account SID and the provider's secret as a Basic header")
	}

	form, err := readForm(c)
	if err != nil {
		return err
	}

	update := aisession.CallUpdate{
		CallSID: strings.TrimSuffix(c.Param("call_sid"), ".json"), SecretSHA256: aisession.SecretSHA256(password),
	}
	answer := twilioCall{
		SID: update.CallSID, AccountSID: c.Param("account_sid"), Status: "completed", APIVersion: "2010-04-01",
		URI: c.Request().URL.Path,
	}
	status, twiml := form.Get("Status"), form.Get("Twiml")

	switch {
	case status != "" && twiml != "":
		return fault.InvalidField("Twiml", "unsupported", "send Status or Twiml")
	case status == "completed", status == "canceled":
	case status != "":
		return fault.InvalidField("Status", "unsupported", "must be completed or canceled")
	case twiml == "":
		return fault.InvalidField("Status", "required", "Status=completed or Twiml is required")
	default:
		update.Destination, err = parseTwiML(twiml)
		if err != nil {
			return err
		}

		if update.Destination != "" {
			answer.Status = "in-progress"
		}
	}

	return respond(c, http.StatusOK, answer, r.calls.UpdateCall(c.Request().Context(), update))
}

// readForm reads a form's body within the limits of callers that are not authenticated.
func readForm(c echo.Context) (url.Values, error) {
	media, _, err := mime.ParseMediaType(c.Request().Header.Get("Content-Type"))
	if err != nil || media != "application/x-www-form-urlencoded" {
		return nil, fault.New(fault.KindUnsupported, "The Content-Type must be application/x-www-form-urlencoded")
	}

	if err := checkEncoding(c.Request().Header); err != nil {
		return nil, err
	}

	r := newBodyReader(c)
	if err := r.read(); err != nil {
		return nil, err
	}
	if bytes.Count(r.body, []byte{'&'}) >= maxParameters {
		return nil, fault.Invalid("The form has more than 100 parameters")
	}

	form, err := url.ParseQuery(string(r.body))
	if err != nil {
		return nil, fault.Invalid("The body is not an encoded form")
	}

	return form, nil
}

// parseTwiML returns the number that a document dials, or "" if it hangs up. The first verb counts; the error
// names what is not supported.
func parseTwiML(document string) (destination string, err error) {
	refuse := func(text string) (string, error) { return "", fault.InvalidField("Twiml", "unsupported", text) }
	decoder := xml.NewDecoder(strings.NewReader(document))
	var path []string
	var number strings.Builder

	for {
		token, err := decoder.Token()
		switch {
		case errors.Is(err, io.EOF):
			return refuse("must be <Response> with <Dial> or <Hangup>")
		case err != nil:
			return refuse("is not well-formed XML")
		}

		switch t := token.(type) {
		case xml.StartElement:
			path = append(path, t.Name.Local)
			switch strings.Join(path, "/") {
			case "Response", "Response/Dial", "Response/Dial/Number", "Response/Dial/Sip":
			case "Response/Hangup":
				return "", nil
			default:
				return refuse("has " + shortName(t.Name.Local) +
					": only <Dial> with a number, <Number> or <Sip>, and <Hangup> are supported")
			}
		case xml.CharData:
			if len(path) > 1 {
				number.Write(t)
			}
		case xml.EndElement:
			path = path[:len(path)-1]
			if len(path) == 1 {
				destination = dialled(number.String())
				if destination == "" {
					return refuse("dials no number")
				}
				return destination, nil
			}
		}
	}
}

// dialled returns the number or extension of what a document dials: a number, or the user of a SIP address.
func dialled(text string) string {
	text = strings.TrimSpace(text)
	for _, scheme := range []string{"sip:", "sips:"} {
		rest, isSIP := strings.CutPrefix(text, scheme)
		if isSIP {
			user, _, _ := strings.Cut(rest, "@")
			return user
		}
	}
	return text
}

func shortName(name string) string { return "<" + name[:min(len(name), 32)] + ">" }
