package credentials

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/aws/aws-msk-iam-sasl-signer-go/signer"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/segmentio/kafka-go/sasl"
)

// newMSKLogin returns the login to Amazon MSK with IAM: OAUTHBEARER with a token that
// AWS's signer creates from the AWS SDK's default credential chain. The token expires
// with those credentials. If region is "", the SDK determines it.
func newMSKLogin(ctx context.Context, region string, log *slog.Logger) (Login, error) {
	aws, err := awsconfig.LoadDefaultConfig(ctx, awsconfig.WithRegion(region))
	if err != nil {
		return nil, fmt.Errorf("reading the AWS configuration: %w", err)
	}

	if aws.Region == "" {
		return nil, errors.New("set kafka.sasl.aws_region or AWS_REGION")
	}

	tokens := newTokenCache(func(ctx context.Context) (bearerToken, error) {
		requestedAt := time.Now()
		awsCredentials, err := aws.Credentials.Retrieve(ctx)
		if err != nil {
			return bearerToken{}, err
		}

		// With the credentials that were just retrieved, so that the expiry below is theirs.
		text, expiresMillis, err := signer.GenerateAuthTokenFromCredentialsProvider(ctx, aws.Region,
			credentials.StaticCredentialsProvider{Value: awsCredentials})
		token := bearerToken{text: text, requestedAt: requestedAt, expiresAt: time.UnixMilli(expiresMillis)}
		if awsCredentials.CanExpire && awsCredentials.Expires.Before(token.expiresAt) {
			token.expiresAt = awsCredentials.Expires
		}

		return token, err
	}, log)

	return func(ctx context.Context) (sasl.Mechanism, error) {
		token, err := tokens.get(ctx)
		if err != nil {
			return nil, err
		}
		return oauthBearer{token: token}, nil
	}, nil
}
