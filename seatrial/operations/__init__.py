"""Operations on deployments and accounts: documents in, documents or findings out; a module or package for each."""
