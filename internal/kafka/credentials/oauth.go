package credentials

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
)

// oauthBearer is the mechanism OAUTHBEARER (RFC 7628, with Kafka's extensions
// of KIP-342) with one token.
type oauthBearer struct {
	token      string
	extensions []string // name=value
}

// Name implements sasl.Mechanism.
func (oauthBearer) Name() string { return "OAUTHBEARER" }

// Start implements sasl.Mechanism.
func (m oauthBearer) Start(context.Context) (sasl.StateMachine, []byte, error) {
	const separator = "\x01"
	message := "n,," + separator + "auth=Bearer " + m.token + separator
	for _, extension := range m.extensions {
		message += extension + separator
	}
	return m, []byte(message + separator), nil
}

// Next implements sasl.StateMachine. A broker rejects a token with a JSON document
// instead of an error code.
func (oauthBearer) Next(_ context.Context, challenge []byte) (done bool, response []byte, err error) {
	if len(challenge) == 0 {
		return true, nil, nil
	}

	var rejection struct {
		Status string `json:"status"`
	}
	err = json.Unmarshal(challenge, &rejection)
	if err != nil || rejection.Status == "" {
		return false, nil, kafkago.SASLAuthenticationFailed
	}

	return false, nil,
		fmt.Errorf("%w: the broker refuses the token: %q", kafkago.SASLAuthenticationFailed, rejection.Status)
}

// newOAuthLogin returns the login with tokens from a file or a token endpoint.
func newOAuthLogin(s OAuth, log *slog.Logger) (Login, error) {
	currentToken := s.readToken
	if s.TokenFile == "" {
		currentToken = newTokenCache(s.newTokenRequester(), log).get
	} else {
		_, err := currentToken(context.Background()) // a file that cannot be read is known at start
		if err != nil {
			return nil, err
		}
	}

	return func(ctx context.Context) (sasl.Mechanism, error) {
		token, err := currentToken(ctx)
		if err != nil {
			return nil, err
		}
		return oauthBearer{token, s.Extensions}, nil
	}, nil
}

// readToken reads TokenFile, which another program updates.
func (s OAuth) readToken(context.Context) (string, error) {
	text, err := os.ReadFile(s.TokenFile)
	if err != nil {
		return "", fmt.Errorf("reading the token: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("reading the token: %s does not hold one", s.TokenFile)
	}
	return token, nil
}

// newTokenRequester returns a function that requests a token from TokenURL with the client
// credentials grant (RFC 6749, section 4.4).
func (s OAuth) newTokenRequester() func(context.Context) (bearerToken, error) {
	parameters := url.Values{}
	for _, p := range s.Parameters {
		name, value, _ := strings.Cut(p, "=")
		parameters.Add(name, value)
	}

	grant := clientcredentials.Config{
		ClientID: s.ClientID, ClientSecret: string(s.ClientSecret), TokenURL: s.TokenURL, Scopes: s.Scopes,
		EndpointParams: parameters,
	}

	client := &http.Client{
		Timeout: tokenRequestTimeout,
		// A redirect would send the client secret to another address.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}

	return func(ctx context.Context) (bearerToken, error) {
		requestedAt := time.Now()
		token, err := grant.Token(context.WithValue(ctx, oauth2.HTTPClient, client))
		if retrieveErr, ok := errors.AsType[*oauth2.RetrieveError](err); ok { // its text contains the whole response
			return bearerToken{},
				fmt.Errorf("the token endpoint answers %s %q", retrieveErr.Response.Status, retrieveErr.ErrorCode)
		}
		if err != nil {
			return bearerToken{}, err
		}

		return bearerToken{text: token.AccessToken, requestedAt: requestedAt, expiresAt: token.Expiry}, nil
	}
}
