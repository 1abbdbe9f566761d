package agent

import (
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// joinAgain is the command that lets a host in again.
const joinAgain = "holdfast agent --join TOKEN"

// lockedOut adds to an error what it means that the servers do not accept this host's certificate, and what to do. They say so themselves where they know the host; of one
// whose certificate they cannot verify they know nothing.
func lockedOut(err error) error {
	if !apierrors.IsUnauthorized(err) || strings.Contains(err.Error(), joinAgain) {
		return err
	}
	return fmt.Errorf("%w: the servers do not accept the certificate of this host: it has ended, or is from before a 'holdfast ca rotate', as where the host was removed. "+
		"If the host shall come back, create a token on a server with 'holdfast token create', and start its agent with '%s'; where it runs a server, the token is of "+
		"'holdfast token create --role server', and the start 'holdfast server --join TOKEN'", err, joinAgain)
}
