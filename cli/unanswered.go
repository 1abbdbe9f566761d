package cli

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/cli/noquorum"
	"github.com/holdfast-storage/holdfast/control"
	"github.com/holdfast-storage/holdfast/control/quorumview"
)

// selfSaying are the commands that ask no server, or say themselves what it means that none answers.
var selfSaying = []string{"server", "agent", "doctor", "restore", "version"}

// toldUnanswered adds to the error of a command what it means that no server gave an answer, and what to do: the words of the libraries
// name neither the quorum nor who can say more.
func toldUnanswered(cmd *cobra.Command, err error) error {
	var coded *exitError
	var lost *noquorum.Error
	top := topLevel(cmd)
	switch {
	case errors.As(err, &lost):
		return lost
	case apierrors.ReasonForError(err) == metav1.StatusReason(api.ReasonQuorumLost):
		return err // it says itself which servers do not answer, and what to do
	case errors.As(err, &coded) && coded.code != exitFailed, slices.Contains(selfSaying, top), !unanswered(err, top != "ceph"):
		return err
	}
	return fmt.Errorf("no server answered (%w): this server or most servers may be down; run 'holdfast doctor', which "+
		"checks each server that this machine knows and names the next step", err)
}

// toldLockedOut adds to the error of a command what it means that the servers do not accept the kubeconfig, or it does not accept them, and what to do: the words of
// the libraries do not tell of a rotation of the authority.
func toldLockedOut(cmd *cobra.Command, err error) error {
	if slices.Contains(selfSaying, topLevel(cmd)) || !lockedOut(err) {
		return err
	}
	return fmt.Errorf("the servers refuse the certificate of the kubeconfig (%w): it expired, 'holdfast ca rotate' "+
		"replaced its authority, or its server was removed; copy %s from a server again, or ask an administrator for a "+
		"kubeconfig ('holdfast kubeconfig create')", err, control.AdminKubeconfig(defaultDataDir))
}

// lockedOut says whether an error means that the servers and the kubeconfig are not of one authority, or that the certificate has ended.
func lockedOut(err error) bool {
	var request *url.Error
	var authority x509.UnknownAuthorityError
	return apierrors.IsUnauthorized(err) || errors.As(err, &request) && errors.As(request.Err, &authority)
}

// topLevel is the name of the command below the root that a command belongs to.
func topLevel(cmd *cobra.Command) string {
	for cmd.HasParent() && cmd.Parent().HasParent() {
		cmd = cmd.Parent()
	}
	return cmd.Name()
}

// unanswered says whether an error means that no server could be reached or has a quorum. Whether a time that ran out counts that names no
// request is for the caller to say: it may be a storage system that was waited for.
func unanswered(err error, bare bool) bool {
	var request *url.Error
	var network *net.OpError
	switch {
	case errors.As(err, &request) && (request.Timeout() || errors.As(request.Err, &network) && network.Op == "dial"):
		return true
	case errors.Is(err, quorumview.ErrUnseen):
		return false // it says itself what to do
	case errors.Is(err, quorumview.ErrUnknown):
		return true
	case apierrors.IsTimeout(err), apierrors.IsServerTimeout(err), apierrors.IsServiceUnavailable(err):
		return true
	case apierrors.IsInternalError(err):
		return strings.Contains(err.Error(), "etcdserver: ")
	}
	return bare && errors.Is(err, context.DeadlineExceeded)
}
