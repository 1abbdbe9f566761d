package join

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/holdfast-storage/holdfast/control/endpoints"
	"github.com/holdfast-storage/holdfast/control/pki"
)

// Check says why no token can be made for this role and time.
func Check(role Role, ttl time.Duration) error {
	if role != RoleServer && role != RoleAgent {
		return fmt.Errorf("the role %q does not exist: a token is for a %s or an %s", role, RoleServer, RoleAgent)
	}
	if ttl < time.Minute || ttl > 30*24*time.Hour {
		return fmt.Errorf("a token cannot be valid for %s: choose between 1m and 720h", ttl)
	}
	return nil
}

// Create makes a token, with the rights of config, an administrator's. It returns the token as one word, which is shown once
// and stored nowhere.
func Create(ctx context.Context, config *rest.Config, role Role, ttl time.Duration) (string, error) {
	if err := Check(role, ttl); err != nil {
		return "", err
	}
	trusted, err := endpoints.Trusted(ctx, config)
	if err != nil {
		return "", err
	}
	servers, err := endpoints.List(ctx, config)
	if err != nil {
		return "", err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return "", err
	}
	secrets := client.CoreV1().Secrets(systemNamespace)
	token := &Token{Fingerprint: pki.Fingerprint(trusted[0]), ID: random(8), Secret: random(32), Servers: servers}
	record := newRecord(token, role, time.Now().Add(ttl))
	if _, err := secrets.Create(ctx, record, metav1.CreateOptions{}); err != nil {
		return "", fmt.Errorf("while recording the token: %w", err)
	}
	return token.String(), removeExpired(ctx, client, time.Now())
}

// random returns n random bytes in hex.
func random(n int) string {
	raw := make([]byte, n)
	if _, err := rand.Read(raw); err != nil {
		panic(err) // crypto/rand.Read never returns an error.
	}
	return hex.EncodeToString(raw)
}

// hash is what the server keeps of a token's secret. The secret is random and long, so that a fast hash suffices.
func hash(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// keepExpired is how long the record of an expired token is kept, so that its late user is told what became of it.
const keepExpired = 7 * 24 * time.Hour

func removeExpired(ctx context.Context, client kubernetes.Interface, now time.Time) error {
	secrets := client.CoreV1().Secrets(systemNamespace)
	list, err := secrets.List(ctx, metav1.ListOptions{FieldSelector: "type=" + string(secretType)})
	if err != nil {
		return fmt.Errorf("while looking for expired tokens: %w", err)
	}
	for i := range list.Items {
		r := record{&list.Items[i]}
		if now.Before(r.expires().Add(keepExpired)) {
			continue
		}
		if err := secrets.Delete(ctx, r.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("while removing an expired token: %w", err)
		}
	}
	return nil
}

// secretType marks the Secrets that are records of tokens.
const secretType corev1.SecretType = "holdfast.io/join-token"
