package agent

import (
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// joinAgain is the command that lets a host in again.
const joinAgain = "holdfast agent --join TOKEN"

// lockedOut adds to an error what it means that the servers do not accept this host's certificate, and what to do.
// They say so themselves where they know the host; of one whose certificate they cannot verify they know nothing.
func lockedOut(err error) error {
	if !apierrors.IsUnauthorized(err) || strings.Contains(err.Error(), joinAgain) {
		return err
	}
	return fmt.Errorf("%w: the servers refuse the certificate of this host: it expired, 'holdfast ca rotate' replaced the "+
		"authority, or the host was removed. To rejoin, run 'holdfast token create' on a server, then '%s' here; if this "+
		"machine runs a server, 'holdfast token create --role server' there, then 'holdfast server --join TOKEN' here",
		err, joinAgain)
}
