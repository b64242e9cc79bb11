"""Operations on deployments and accounts: documents in, documents or findings out; a package for each command."""
