package sip

import (
	"fmt"

	sipmsg "github.com/emiago/sipgo/sip"
	"github.com/icholy/digest"
)

// isChallenge reports whether a response asks for credentials (401 or 407).
func isChallenge(r *sipmsg.Response) bool { return r.StatusCode == 401 || r.StatusCode == 407 }

// authorize returns a copy of the request as a new transaction, with credentials for a challenge.
func (t *transports) authorize(request *sipmsg.Request, challenge *sipmsg.Response,
	username, password string) (*sipmsg.Request, error) {
	challengeHeader, credentialsHeader := "WWW-Authenticate", "Authorization"
	if challenge.StatusCode == 407 {
		challengeHeader, credentialsHeader = "Proxy-Authenticate", "Proxy-Authorization"
	}

	parsed, err := digest.ParseChallenge(headerValue(challenge, challengeHeader))
	if err != nil {
		return nil, fmt.Errorf("reading a challenge: %w", err)
	}

	credentials, err := digest.Digest(parsed, digest.Options{
		Method: request.Method.String(), URI: request.Recipient.Addr(), Username: username, Password: password,
	})
	if err != nil {
		return nil, fmt.Errorf("answering a challenge: %w", err)
	}

	retry := request.Clone()
	retry.RemoveHeader(credentialsHeader)
	retry.AppendHeader(sipmsg.NewHeader(credentialsHeader, credentials.String()))
	retry.Via().Params.Add("branch", t.branches.newBranch())
	retry.CSeq().SeqNo++

	return retry, nil
}
