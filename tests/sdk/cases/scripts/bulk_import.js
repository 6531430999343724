// Creates the documents one after the other and answers how many it made. The caller sends the rest once more: the
// server may stop accepting work, and `most` lets a test stop it earlier.
function bulkImport(documents, most) {
  const collection = getContext().getCollection();
  const response = getContext().getResponse();
  let made = 0;
  response.setBody(made);
  next();

  function next() {
    if (made === documents.length || made === most) return;
    collection.createDocument(collection.getSelfLink(), documents[made], (error) => {
      if (error) throw error;
      made += 1;
      response.setBody(made);
      next();
    });
  }
}
